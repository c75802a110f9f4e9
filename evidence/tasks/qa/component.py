"""The component `qa`, which sets the span of a context that answers a question."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d

from ..pairs import line_break
from . import model as _model  # noqa: F401  (registers the architecture that the configs name)
from .annotation import aligned_answer, answer, set_answer
from .scorer import score_qa

_SAMPLE = 10
_TINY = 1e-30  # added to probabilities, so that the logarithm of 0 in float32 is finite


@Language.factory(
    "qa",
    assigns=["doc.spans"],
    default_config={"max_answer": 30, "scorer": {"@scorers": "evidence.qa_scorer.v1"}},
    default_score_weights={"qa_f": 1.0, "qa_em": 0.0},
)
def make_qa(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats2d]],
    max_answer: int,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "QuestionAnswerer":
    """Make the component.

    Args:
        model: an `evidence.AnswerPointer.v1`.
        max_answer: largest length of a predicted answer, in tokens.
        scorer: an `evidence.qa_scorer.v1`.
    """
    return QuestionAnswerer(nlp.vocab, model, name, max_answer=max_answer, scorer=scorer)


class QuestionAnswerer(TrainablePipe):
    """Component that finds the first and the last token of the answer. It always predicts an answer; questions without
    an answer are not supported."""

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats2d]],
        name: str = "qa",
        *,
        max_answer: int = 30,
        scorer: Callable[..., dict[str, Any]] | None = score_qa,
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name
        self.max_answer = max_answer
        self.scorer = scorer

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Initialize the model with a few examples.

        Raises:
            ValueError: no training Doc has an answer.
        """
        if not any(answer(example.reference) for example in get_examples()):
            raise ValueError(
                f"{self.name!r} found no answer in the training Docs. They need the span group 'answer' of "
                "tasks.qa.convert"
            )
        self.model.initialize(X=[example.predicted for example in islice(get_examples(), _SAMPLE)])

    def predict(self, docs: Iterable[Doc]) -> list[Floats2d]:
        """Return the logits of the first and the last token of the answer, (n_tokens of the context, 2) per Doc."""
        docs = list(docs)
        return self.model.predict(docs) if docs else []

    def set_annotations(self, docs: Iterable[Doc], logits: Sequence[Floats2d]) -> None:
        """Write the best answer to `doc.spans["answer"]`."""
        for doc, each in zip(docs, logits, strict=True):
            first = line_break(doc) + 1
            start, end = best_span(*self.model.ops.to_numpy(each).T, self.max_answer)
            set_answer(doc, first + start, first + end)

    def get_loss(
        self, examples: Iterable[Example], logits: Sequence[Floats2d]
    ) -> tuple[float, list[Floats2d]]:
        """Return the cross-entropy of the first and the last token. It is a mean over questions, so that the l2 of a
        listener has the weight of the paper. An answer that matches no tokens has no gradient."""
        loss, gradients = 0.0, []
        for example, each in zip(examples, logits, strict=True):
            gradient = self.model.ops.alloc2f(*each.shape)
            found = aligned_answer(example)
            if found is not None:
                first = line_break(example.predicted) + 1
                right = [found.start - first, found.end - 1 - first], [0, 1]
                gradient = np.exp(each - each.max(axis=0))
                gradient /= gradient.sum(axis=0)
                loss -= float(np.log(gradient[right] + _TINY).sum())
                gradient[right] -= 1
            gradients.append(gradient / len(logits))
        return loss / len(logits), gradients


def best_span(start: np.ndarray, end: np.ndarray, longest: int) -> tuple[int, int]:
    """Return the span of up to `longest` tokens with the highest sum of the scores of its first and its last token.

    Args:
        start, end: (n,) the score of each token as the first and as the last token of the answer.

    Returns:
        The first token of the span, and the token after it.
    """
    beyond = np.full(longest - 1, -np.inf, dtype=end.dtype)
    ends = sliding_window_view(np.concatenate([end, beyond]), longest)
    first, after = np.unravel_index((start[:, None] + ends).argmax(), ends.shape)
    return int(first), int(first + after + 1)

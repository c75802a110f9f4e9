"""Extractive question answering.

    python -m tasks.qa IN.jsonl OUT.spacy [--without OTHER.jsonl]

A line is {"question": "...", "context": "...", "answers": [{"text": "...", "start": 34}, ...]}, where `start` is a
character offset in the context. A question becomes one Doc: the question, a line break, the context.
`doc.spans["answer"]` contains its first answer, extended to whole tokens. Questions without an answer are left out.
With --without, questions that another file has for the same context are left out too.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import spacy
import torch
from numpy.lib.stride_tricks import sliding_window_view
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import ArgsKwargs, Model, PyTorchWrapper, chain, torch2xp, xp2torch
from thinc.types import Floats2d, Floats3d
from torch import Tensor, nn

from tasks.conversion import run
from tasks.networks import (
    SAMPLE,
    TINY,
    BiLSTM,
    Pair,
    attend,
    line_break,
    mask,
    padded,
    pairs,
    reduced,
)

ANSWER = "answer"
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def answer(doc: Doc) -> Span | None:
    """Return the answer of a Doc; None if it has none."""
    return next(iter(doc.spans.get(ANSWER, [])), None)


def set_answer(doc: Doc, start: int, end: int) -> None:
    """Set the answer of a Doc to the tokens from `start` to `end` (not included)."""
    doc.spans[ANSWER] = SpanGroup(doc, name=ANSWER, spans=[Span(doc, start, end)])


def aligned_answer(example: Example) -> Span | None:
    """Return the labelled answer in tokens of the predicted Doc; None if it matches no tokens there."""
    labelled = answer(example.reference)
    if labelled is None:
        return None
    return next(iter(example.get_aligned_spans_y2x([labelled])), None)


def convert(records: Iterable[dict[str, Any]], nlp: Language) -> Iterator[Doc]:
    """Yield the Docs of answered questions."""
    for record in records:
        if record["answers"]:
            # All whitespace becomes single spaces, so that the first line break is that after the question.
            question, first = " ".join(record["question"].split()), record["answers"][0]
            doc = nlp.make_doc(f"{question}\n{record['context']}")
            start = len(question) + 1 + first["start"]
            span = doc.char_span(start, start + len(first["text"]), alignment_mode="expand")
            set_answer(doc, span.start, span.end)
            yield doc


class Bidaf(nn.Module):
    """Network that encodes both texts, computes attention in both directions, and scores both ends of the answer.

    Args:
        width: width of the input and of the LSTMs (both directions together).
        dropout: dropout rate on the input of each layer.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.encode = BiLSTM(width, width)
        self.of_context = nn.Linear(width, 1)
        self.of_question = nn.Linear(width, 1, bias=False)
        self.of_both = nn.Parameter(torch.ones(width) / width**0.5)
        self.merge = nn.Sequential(nn.Linear(4 * width, width), nn.ReLU())
        self.read = BiLSTM(width, width)
        self.read_end = BiLSTM(width, width)
        self.start = nn.Linear(2 * width, 1)
        self.end = nn.Linear(2 * width, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, question: Tensor, question_lengths: Tensor, context: Tensor, context_lengths: Tensor
    ) -> Tensor:
        """Compute the scores of each token of the context as the first and as the last token of the answer.

        Args:
            question, context: (batch, longest, width), padded.
            question_lengths, context_lengths: (batch,), each at least 1.

        Returns:
            (batch, longest context, 2) logits. In the padding they have no meaning.
        """
        q = self.encode(self.dropout(question), question_lengths)
        c = self.encode(self.dropout(context), context_lengths)
        merged = self._attend(c, q, mask(context_lengths), mask(question_lengths))
        m = self.read(self.dropout(merged), context_lengths)
        m_end = self.read_end(self.dropout(m), context_lengths)
        start = self.start(self.dropout(torch.cat([merged, m], dim=2)))
        end = self.end(self.dropout(torch.cat([merged, m_end], dim=2)))
        return torch.cat([start, end], dim=2)

    def _attend(self, c: Tensor, q: Tensor, context_mask: Tensor, question_mask: Tensor) -> Tensor:
        """Return the context with attention to the question, (batch, longest context, width)."""
        similarity = self.of_context(c) + self.of_question(q).transpose(1, 2)
        similarity = similarity + (c * self.of_both) @ q.transpose(1, 2)
        asked = attend(similarity, q, question_mask)
        # The mean of the context, weighted by the similarity of its tokens to their most similar word of the question.
        best = similarity.masked_fill(~question_mask[:, None], -torch.inf).amax(dim=2)
        relevant = attend(best[:, None], c, context_mask)
        return self.merge(self.dropout(torch.cat([c, asked, c * asked, c * relevant], dim=2)))


@spacy.registry.architectures("evidence.AnswerPointer.v1")
def answer_pointer(
    tok2vec: Model[list[Doc], list[Floats2d]], hidden_width: int, dropout: float
) -> Model[list[Doc], list[Floats2d]]:
    """Return a model of the logits of the first and the last token of the answer, (n_tokens of the context, 2) per Doc.

    It is the BiDAF of Seo et al. (2017), on which the paper's baseline (Clark and Gardner 2018) is based. It is
    simplified: it is narrower, has one layer instead of two, and has no self-attention and no shared norm.

    Args:
        tok2vec: model of the vectors of tokens.
        hidden_width: width of the BiDAF.
        dropout: dropout rate in the BiDAF. The rest of the model has `[training] dropout`.
    """
    model: Model[list[Doc], list[Floats2d]] = chain(
        pairs(reduced(tok2vec, hidden_width)),
        PyTorchWrapper(
            Bidaf(hidden_width, dropout), convert_inputs=padded, convert_outputs=unpadded
        ),
    )
    model.set_ref("tok2vec", tok2vec)
    return model


def unpadded(
    model: Model, inputs_outputs: tuple[list[Pair], Tensor], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], ArgsKwargs]]:
    """Convert padded logits to the logits of each context, and their gradients to padded tensors."""
    asked, output = inputs_outputs
    logits: Floats3d = torch2xp(output.detach(), ops=model.ops)

    def back(d_logits: list[Floats2d]) -> ArgsKwargs:
        gradient: Any = xp2torch(model.ops.pad(d_logits))
        return ArgsKwargs(args=((output,),), kwargs={"grad_tensors": gradient})

    return model.ops.unpad(logits, [len(context) for _, context in asked]), back


def normal_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without ASCII punctuation and articles."""
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def word_f1(predicted: str, gold: str) -> float:
    """Return the F1 between the bags of words of two answers; 0 if they share no word."""
    left, right = normal_words(predicted), normal_words(gold)
    shared = (Counter(left) & Counter(right)).total()
    return 2 * shared / (len(left) + len(right)) if shared else 0.0


def score_qa(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Return the means over the questions that have an answer.

    Returns:
        `qa_em`, the share of answers with the same words as the correct answer, and `qa_f`, the mean of `word_f1`; None
        if no question has an answer.
    """
    pairs = []
    for example in examples:
        predicted, gold = answer(example.predicted), answer(example.reference)
        if gold is not None:
            pairs.append((predicted.text if predicted else "", gold.text))
    if not pairs:
        return {"qa_em": None, "qa_f": None}
    exact = [normal_words(predicted) == normal_words(gold) for predicted, gold in pairs]
    return {
        "qa_em": sum(exact) / len(pairs),
        "qa_f": sum(word_f1(predicted, gold) for predicted, gold in pairs) / len(pairs),
    }


@Language.factory(
    "qa",
    assigns=["doc.spans"],
    default_config={"max_answer": 30},
    default_score_weights={"qa_f": 1.0, "qa_em": 0.0},
)
def make_qa(
    nlp: Language, name: str, model: Model[list[Doc], list[Floats2d]], max_answer: int
) -> "QuestionAnswerer":
    """Make the component.

    Args:
        model: an `evidence.AnswerPointer.v1`.
        max_answer: largest length of a predicted answer, in tokens.
    """
    return QuestionAnswerer(nlp.vocab, model, name, max_answer=max_answer)


class QuestionAnswerer(TrainablePipe):
    """Component that finds the first and the last token of the answer. It always predicts an answer; questions without
    an answer are not supported."""

    scorer = staticmethod(score_qa)

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats2d]],
        name: str = "qa",
        *,
        max_answer: int = 30,
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name
        self.max_answer = max_answer

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Initialize the model with a few examples."""
        self.model.initialize(X=[example.predicted for example in islice(get_examples(), SAMPLE)])

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
                loss -= float(np.log(gradient[right] + TINY).sum())
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


if __name__ == "__main__":
    run(convert, __doc__)

"""The component `srl`, which sets the arguments of given predicates (semantic role labelling)."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d

from . import model as _model  # noqa: F401  (registers the architecture that the configs name)
from .annotation import arguments, predicates, set_arguments
from .bio import best_path, decode, encode, n_tags
from .scorer import score_srl

_SAMPLE = 10
_TINY = 1e-30  # added to probabilities, so that the logarithm of 0 in float32 is finite


@Language.factory(
    "srl",
    assigns=["doc.spans"],
    default_config={"scorer": {"@scorers": "evidence.srl_scorer.v1"}},
    default_score_weights={"srl_f": 1.0, "srl_p": 0.0, "srl_r": 0.0, "srl_per_type": None},
)
def make_srl(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats2d]],
    scorer: Callable[..., dict[str, Any]] | None,
) -> "SemanticRoleLabeler":
    """Make the component.

    Args:
        model: an `evidence.PredicateTagger.v1`.
        scorer: an `evidence.srl_scorer.v1`.
    """
    return SemanticRoleLabeler(nlp.vocab, model, name, scorer=scorer)


class SemanticRoleLabeler(TrainablePipe):
    """Component that predicts BIO tags of all tokens for each predicate, and converts them to arguments.

    As in the paper, the predicates are given: `doc.spans["predicates"]` must be set before. A Doc without predicates
    gets no arguments.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats2d]],
        name: str = "srl",
        *,
        scorer: Callable[..., dict[str, Any]] | None = score_srl,
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        self.cfg: dict[str, Any] = {"labels": []}

    @property
    def labels(self) -> tuple[str, ...]:
        """The roles that the component predicts."""
        return tuple(self.cfg["labels"])

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Collect the roles of all examples, and initialize the model with a few examples.

        Raises:
            ValueError: no training Doc has an argument, or none has a predicate.
        """
        references = (example.reference for example in get_examples())
        self.cfg["labels"] = sorted(
            {
                label
                for doc in references
                for found in arguments(doc).values()
                for *_, label in found
            }
        )
        if not self.labels:
            raise ValueError(
                f"{self.name!r} found no argument in the training Docs. They need the span groups 'predicates' and "
                "'arguments' of tasks.srl.convert"
            )
        docs = (example.predicted for example in get_examples() if predicates(example.predicted))
        sample = list(islice(docs, _SAMPLE))
        if not sample:
            raise ValueError(
                f"{self.name!r} found no predicate on the predicted Docs: "
                "read the corpus with evidence.PredicateCorpus.v1"
            )
        tags = self.model.ops.alloc2f(1, n_tags(self.labels))
        self.model.initialize(X=sample, Y=[tags])

    def predict(self, docs: Iterable[Doc]) -> list[Floats2d]:
        """Return the probabilities of the tags, (n_tokens, n_tags) for each predicate of each Doc."""
        docs = list(docs)
        return self.model.predict(docs) if any(map(predicates, docs)) else []

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Floats2d]) -> None:
        """Write the arguments to `doc.spans["arguments"]`."""
        each = iter(scores)
        for doc in docs:
            set_arguments(doc, {index: self._arguments(next(each)) for index in predicates(doc)})

    def _arguments(self, probabilities: Floats2d) -> list[Any]:
        tags = self.model.ops.to_numpy(probabilities)
        return decode(best_path(np.log(tags + _TINY)), self.labels)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Update the model with the Docs that have predicates."""
        learnable = [example for example in examples if predicates(example.predicted)]
        return super().update(learnable, drop=drop, sgd=sgd, losses=losses)

    def get_loss(
        self, examples: Iterable[Example], scores: Sequence[Floats2d]
    ) -> tuple[float, list[Floats2d]]:
        """Return the cross-entropy of the tags. It is a mean over the tokens of all predicates, so that the l2 of a
        listener has the weight of the paper."""
        ops = self.model.ops
        gold = [
            encode(arguments(example.reference)[index], len(example.reference), self.labels)
            for example in examples
            for index in predicates(example.predicted)
        ]
        total = sum(map(len, gold))
        loss, gradients = 0.0, []
        for tags, probabilities in zip(gold, scores, strict=True):
            correct = np.arange(len(tags)), tags
            loss -= float(np.log(ops.to_numpy(probabilities)[correct] + _TINY).sum()) / total
            gradient = probabilities.copy()
            gradient[correct] -= 1
            gradients.append(gradient / total)
        return loss, gradients

"""The component `coref`, which sets clusters of spans that mention the same entity."""

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

from .annotation import Cluster, clusters, set_clusters
from .model import Ranking
from .scorer import score_coref

_SAMPLE = 3
_TINY = 1e-30  # added to probabilities, so that the logarithm of 0 in float32 is finite


@Language.factory(
    "coref",
    assigns=["doc.spans"],
    default_config={"scorer": {"@scorers": "evidence.coref_scorer.v1"}},
    default_score_weights={
        "coref_f": 1.0,
        "coref_muc_f": 0.0,
        "coref_b3_f": 0.0,
        "coref_ceafe_f": 0.0,
    },
)
def make_coref(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Ranking]],
    scorer: Callable[..., dict[str, Any]] | None,
) -> "CoreferenceResolver":
    """Make the component.

    Args:
        model: an `evidence.SpanRanker.v1`.
        scorer: an `evidence.coref_scorer.v1`.
    """
    return CoreferenceResolver(nlp.vocab, model, name, scorer=scorer)


class CoreferenceResolver(TrainablePipe):
    """Component that links each span to its best antecedent, if its score is above that of no antecedent. Linked spans
    are a cluster."""

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Ranking]],
        name: str = "coref",
        *,
        scorer: Callable[..., dict[str, Any]] | None = score_coref,
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Initialize the model with a few examples.

        Raises:
            ValueError: no training Doc has a cluster.
        """
        if not any(clusters(example.reference) for example in get_examples()):
            raise ValueError(
                f"{self.name!r} found no cluster in the training Docs. They need the span groups 'coref_clusters_1', "
                "'coref_clusters_2', ... of tasks.coref.convert"
            )
        docs = (example.predicted for example in get_examples() if len(example.predicted))
        self.model.initialize(X=list(islice(docs, _SAMPLE)))

    def predict(self, docs: Iterable[Doc]) -> list[Ranking]:
        """Return the ranking of each Doc that is not empty."""
        docs = [doc for doc in docs if len(doc)]
        return self.model.predict(docs) if docs else []

    def set_annotations(self, docs: Iterable[Doc], rankings: Sequence[Ranking]) -> None:
        """Write the clusters to `doc.spans`."""
        each = iter(rankings)
        for doc in docs:
            set_clusters(doc, linked(next(each)) if len(doc) else [])

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Update the model with the Docs that are not empty."""
        learnable = [example for example in examples if len(example.predicted)]
        return super().update(learnable, drop=drop, sgd=sgd, losses=losses)

    def get_loss(
        self, examples: Iterable[Example], rankings: Sequence[Ranking]
    ) -> tuple[float, list[Floats2d]]:
        """Return minus the logarithm of the total probability of all correct antecedents. It is a mean over the kept
        spans, so that the l2 of a listener has the weight of the paper."""
        total = sum(len(ranking.starts) for ranking in rankings)
        loss, gradients = 0.0, []
        for example, ranking in zip(examples, rankings, strict=True):
            right = right_antecedents(ranking, aligned_clusters(example))
            every = probabilities(ranking.scores)
            mass = (every * right).sum(axis=1, keepdims=True)
            loss -= float(np.log(mass + _TINY).sum()) / total
            among_right = probabilities(np.where(right, ranking.scores, -np.inf))
            gradients.append(((every - among_right) / total).astype("f"))
        return loss, gradients


def probabilities(scores: np.ndarray) -> np.ndarray:
    """Return the softmax of each row. A score of -inf becomes 0."""
    exps = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exps / exps.sum(axis=1, keepdims=True)


def aligned_clusters(example: Example) -> list[Cluster]:
    """Return the labelled clusters in tokens of the predicted Doc. Mentions that match no tokens there are left out."""
    if len(example.predicted) == len(example.reference):
        return clusters(example.reference)
    found = []
    for cluster in clusters(example.reference):
        spans = [example.reference[start:end] for start, end in cluster]
        aligned = example.get_aligned_spans_y2x(spans, allow_overlap=True)
        found.append([(span.start, span.end) for span in aligned])
    return found


def right_antecedents(ranking: Ranking, gold: Iterable[Cluster]) -> np.ndarray:
    """Return (k, 1 + a) bool, True for the antecedents in the cluster of their span. Column 0 is True if there are
    none."""
    owner = {mention: number for number, cluster in enumerate(gold) for mention in cluster}
    mentions = zip(ranking.starts.tolist(), ranking.ends.tolist(), strict=True)
    span_clusters = np.array([owner.get(mention, -1) for mention in mentions])
    same = (span_clusters[ranking.antecedents] == span_clusters[:, None]) & (
        span_clusters[:, None] >= 0
    )
    same &= np.isfinite(ranking.scores[:, 1:])
    return np.hstack([~same.any(axis=1, keepdims=True), same])


def linked(ranking: Ranking) -> list[Cluster]:
    """Return the clusters of spans that their best antecedents link, in the order of their first mentions."""
    mentions = list(zip(ranking.starts.tolist(), ranking.ends.tolist(), strict=True))
    best = ranking.scores.argmax(axis=1)
    member: dict[int, Cluster] = {}
    for span, choice in enumerate(best.tolist()):
        if choice:
            antecedent = int(ranking.antecedents[span, choice - 1])
            cluster = member.setdefault(antecedent, [mentions[antecedent]])
            cluster.append(mentions[span])
            member[span] = cluster
    found = {id(cluster): cluster for cluster in member.values()}
    return sorted(found.values())

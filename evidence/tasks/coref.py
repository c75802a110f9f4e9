"""Coreference resolution.

    python -m tasks.coref IN.jsonl OUT.spacy

A line is a document: {"sentences": [["Ann", ...], ...], "clusters": [[[0, 0, 1], [2, 4, 5]], ...]}. A mention is
[sentence, start, end], where `end` is exclusive; a type may follow.

`doc.spans["coref_clusters_1"]`, `["coref_clusters_2"]` and so on each contain the mentions of one cluster, as in
spacy-experimental.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
import torch
from scipy.optimize import linear_sum_assignment
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Corpus, Example
from spacy.vocab import Vocab
from thinc.api import ArgsKwargs, Model, Optimizer, PyTorchWrapper, chain, torch2xp, xp2torch
from thinc.types import Floats2d, Ints1d, Ints2d

from spacy_elmo.pipeline.encode.spans import rule_spans
from tasks.conversion import run
from tasks.networks import SAMPLE, TINY, docs_layer, reduced
from tasks.span_ranker import RankedSpans, SpanRanker

PREFIX = "coref_clusters_"


Mention = tuple[int, int]
"""The indices of the first token of a mention and of the token after it."""


Cluster = list[Mention]
"""Mentions of the same entity."""


Clusters = Sequence[Cluster]


def clusters(doc: Doc) -> list[Cluster]:
    """Return the clusters of a Doc; an empty list if it has no such groups."""
    return [
        [(span.start, span.end) for span in group]
        for key, group in doc.spans.items()
        if key.startswith(PREFIX)
    ]


def set_clusters(doc: Doc, groups: Iterable[Cluster]) -> None:
    """Replace the clusters of a Doc."""
    for key in [key for key in doc.spans if key.startswith(PREFIX)]:
        del doc.spans[key]
    for number, cluster in enumerate(groups, 1):
        key = f"{PREFIX}{number}"
        spans = [Span(doc, start, end) for start, end in cluster]
        doc.spans[key] = SpanGroup(doc, name=key, spans=spans)


def pieces(doc: Doc, max_words: int) -> Iterator[Doc]:
    """Yield pieces of a labelled Doc. A piece has whole sentences, by the sentence rule of elmo.

    A cluster is cut like the Doc. It is dropped if a piece has only one of its mentions.

    Args:
        doc: a Doc without whitespace tokens, from `tasks.coref.convert`.
        max_words: largest number of words of a piece. A longer sentence is a piece of its own.
    """
    (sentences,) = rule_spans([doc])
    start = 0
    for sentence, after in zip(sentences, [*sentences[1:], None], strict=True):
        if after is None or after.end - start > max_words:
            yield _piece(doc[start : sentence.end])
            start = sentence.end


def _piece(part: Span) -> Doc:
    doc = Doc(part.doc.vocab, words=[token.text for token in part])
    inside = (
        [
            (start - part.start, end - part.start)
            for start, end in cluster
            if part.start <= start and end <= part.end
        ]
        for cluster in clusters(part.doc)
    )
    set_clusters(doc, (cluster for cluster in inside if len(cluster) > 1))
    return doc


def convert(records: Iterable[dict[str, Any]], nlp: Language) -> Iterator[Doc]:
    """Yield the Docs of documents."""
    for record in records:
        before = [0, *accumulate(map(len, record["sentences"]))]
        # Without spaces, spaCy's readers keep these tokens, to which the annotation refers.
        doc = Doc(nlp.vocab, words=[word for sentence in record["sentences"] for word in sentence])
        set_clusters(
            doc,
            [
                [
                    (before[sentence] + start, before[sentence] + end)
                    for sentence, start, end, *_ in cluster
                ]
                for cluster in record["clusters"]
            ],
        )
        yield doc


@spacy.registry.readers("evidence.CorefPieces.v1")
def coref_pieces(
    path: Path | None, max_words: int, limit: int = 0
) -> Callable[[Language], Iterator[Example]]:
    """Return a `spacy.Corpus.v1` that cuts its Docs into pieces of at most `max_words` words, because a training step
    on a whole chapter takes too long."""

    def read(nlp: Language) -> Iterator[Example]:
        for example in Corpus(path, limit=limit)(nlp):
            for piece in pieces(example.reference, max_words):
                words = [token.text for token in piece]
                yield Example(Doc(nlp.vocab, words=words), piece)

    return read


# Agreement of predicted and labelled clusters. Each metric returns a recall of the labelled clusters, or with exchanged
# arguments a precision of the predicted ones, as a numerator and a denominator, which are added over documents.


class Share(NamedTuple):
    """A count and its maximum."""

    matched: float
    total: float


def muc(key: Clusters, response: Clusters) -> Share:
    """Count links (Vilain et al. 1995). A cluster of n mentions has n - 1 links. One link is lost for each additional
    part into which the other clusters divide it."""
    matched = total = 0
    owner = _owners(response)
    for cluster in key:
        owners = [owner.get(mention) for mention in cluster]
        parts = len(set(owners) - {None}) + owners.count(None)
        matched += len(cluster) - parts
        total += len(cluster) - 1
    return Share(matched, total)


def b_cubed(key: Clusters, response: Clusters) -> Share:
    """Count mentions (Bagga and Baldwin 1998). A mention counts as the share of its cluster that one of the other
    clusters has together with it."""
    matched = 0.0
    total = 0
    owner = _owners(response)
    for cluster in key:
        owners = [owner.get(mention) for mention in cluster]
        together = (owners.count(number) for number in set(owners) - {None})
        matched += sum(count * count for count in together) / len(cluster)
        total += len(cluster)
    return Share(matched, total)


def ceaf_e(key: Clusters, response: Clusters) -> Share:
    """Add the similarities of clusters, 2 |K and R| / (|K| + |R|), in their best matching (Luo 2005)."""
    similarity = np.zeros((len(key), len(response)))
    owner = _owners(response)
    for row, cluster in enumerate(key):
        for mention in cluster:
            if mention in owner:
                similarity[row, owner[mention]] += 1
    key_sizes, response_sizes = (
        np.array([len(cluster) for cluster in side], dtype=float) for side in (key, response)
    )
    similarity *= 2 / (key_sizes[:, None] + response_sizes)
    return Share(similarity[linear_sum_assignment(-similarity)].sum(), len(key))


def _owners(clusters: Clusters) -> dict[tuple[int, int], int]:
    """Return the number of the cluster of each mention."""
    return {mention: number for number, cluster in enumerate(clusters) for mention in cluster}


_METRICS = {"muc": muc, "b3": b_cubed, "ceafe": ceaf_e}


def score_coref(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score the clusters of all Docs together, as in CoNLL-2012. Single mentions are in no cluster, so they do not
    count.

    Returns:
        Numbers between 0 and 1: `coref_muc_p`, `_r` and `_f`, the same for `coref_b3` and `coref_ceafe`, and `coref_f`,
        the mean of the three F1.
    """
    pairs = [(clusters(each.reference), clusters(each.predicted)) for each in examples]
    scores: dict[str, Any] = {}
    for name, metric in _METRICS.items():
        recall = _share(metric(key, response) for key, response in pairs)
        precision = _share(metric(response, key) for key, response in pairs)
        both = recall + precision
        scores[f"coref_{name}_p"] = precision
        scores[f"coref_{name}_r"] = recall
        scores[f"coref_{name}_f"] = 2 * recall * precision / both if both else 0.0
    scores["coref_f"] = float(np.mean([scores[f"coref_{name}_f"] for name in _METRICS]))
    return scores


def _share(shares: Iterable[tuple[float, float]]) -> float:
    matched, total = (sum(numbers) for numbers in zip((0, 0), *shares, strict=True))
    return matched / total if total else 0.0


class Ranking(NamedTuple):
    """`RankedSpans` as arrays."""

    starts: Ints1d
    ends: Ints1d
    antecedents: Ints2d
    scores: Floats2d


@spacy.registry.architectures("evidence.SpanRanker.v1")
def span_ranker(
    tok2vec: Model[list[Doc], list[Floats2d]],
    hidden_width: int,
    max_span_width: int,
    spans_per_word: float,
    antecedents: int,
    dropout: float,
) -> Model[list[Doc], list[Ranking]]:
    """Return a model that ranks spans with the baseline of the paper, the `SpanRanker` of Lee et al. (2017).

    It is simplified: it is narrower, has no features of speaker and genre, and keeps spans that cross better ones. It
    has the coarse pruning of Lee et al. (2018), which makes it fast enough for a CPU.

    Args:
        tok2vec: model of the vectors of tokens.
        hidden_width: width of the ranker.
        max_span_width: longest span in tokens. Longer mentions are never predicted.
        spans_per_word: number of kept spans per word.
        antecedents: number of antecedents of each span after the coarse pruning.
        dropout: dropout rate in the ranker. The rest of the model has `[training] dropout`.
    """
    ranker = SpanRanker(hidden_width, max_span_width, spans_per_word, antecedents, dropout)
    model: Model[list[Doc], list[Ranking]] = chain(
        docs_layer("sentences", _sentences, reduced(tok2vec, hidden_width)),
        PyTorchWrapper(ranker, convert_inputs=to_torch, convert_outputs=from_torch),
    )
    model.set_ref("tok2vec", tok2vec)
    return model


def _sentences(
    model: Model[list[Doc], list[list[Floats2d]]], docs: list[Doc], is_train: bool
) -> tuple[list[list[Floats2d]], Callable[[list[list[Floats2d]]], list[Doc]]]:
    """Split the vectors by sentence, by the rule of elmo, which uses no annotation."""
    vectors, backprop_vectors = model.layers[0](docs, is_train)

    def backprop(d_cut: list[list[Floats2d]]) -> list[Doc]:
        return backprop_vectors([model.ops.xp.vstack(parts) for parts in d_cut])

    cut = [
        [x[span.start : span.end] for span in spans]
        for x, spans in zip(vectors, rule_spans(docs), strict=True)
    ]
    return cut, backprop


def to_torch(
    model: Model, X: list[list[Floats2d]], is_train: bool
) -> tuple[ArgsKwargs, Callable[[ArgsKwargs], list[list[Floats2d]]]]:
    """Convert sentences to the argument of `SpanRanker`, and their gradients to arrays."""
    tensors = [[xp2torch(x, requires_grad=is_train) for x in document] for document in X]

    def back(gradients: ArgsKwargs) -> list[list[Floats2d]]:
        return [[torch2xp(d, ops=model.ops) for d in document] for document in gradients.args[0]]

    return ArgsKwargs(args=(tensors,), kwargs={}), back


def from_torch(
    model: Model, inputs_outputs: tuple[Any, list[RankedSpans]], is_train: bool
) -> tuple[list[Ranking], Callable[[list[Floats2d]], ArgsKwargs]]:
    """Convert the output of `SpanRanker` to arrays, and the gradients of its scores to tensors."""
    _, ranked = inputs_outputs
    rankings = [
        Ranking(*(torch2xp(part.detach(), ops=model.ops) for part in each)) for each in ranked
    ]

    def back(d_scores: list[Floats2d]) -> ArgsKwargs:
        gradients = [xp2torch(d) for d in d_scores]
        scores: list[torch.Tensor] = [each.scores for each in ranked]
        return ArgsKwargs(args=(scores,), kwargs={"grad_tensors": gradients})

    return rankings, back


@Language.factory(
    "coref",
    assigns=["doc.spans"],
    default_score_weights={
        "coref_f": 1.0,
        "coref_muc_f": 0.0,
        "coref_b3_f": 0.0,
        "coref_ceafe_f": 0.0,
    },
)
def make_coref(
    nlp: Language, name: str, model: Model[list[Doc], list[Ranking]]
) -> "CoreferenceResolver":
    """Make the component from an `evidence.SpanRanker.v1`."""
    return CoreferenceResolver(nlp.vocab, model, name)


class CoreferenceResolver(TrainablePipe):
    """Component that links each span to its best antecedent, if its score is above that of no antecedent. Linked spans
    are a cluster."""

    scorer = staticmethod(score_coref)

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Ranking]],
        name: str = "coref",
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Initialize the model with a few examples."""
        docs = (example.predicted for example in get_examples() if len(example.predicted))
        self.model.initialize(X=list(islice(docs, SAMPLE)))

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
            loss -= float(np.log(mass + TINY).sum()) / total
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


if __name__ == "__main__":
    run(convert, __doc__)

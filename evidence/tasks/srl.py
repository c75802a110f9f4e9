"""Semantic role labelling for given predicates, as in the paper.

    python -m tasks.srl IN.jsonl OUT.spacy

A line is a sentence:
{"tokens": [...], "predicates": [{"index": 3, "frame": "come.03", "args": [[0, 3, "ARG2"], ...]}, ...]}
An argument is [start, end, label], where `end` is exclusive. Sentences without predicates are left out.

`doc.spans["predicates"]` contains a span of one token for each predicate; its label is the frame.
`doc.spans["arguments"]` contains the arguments of all predicates; the label of a span is the role, and its id is the
index of the predicate.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.scorer import PRFScore
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Corpus, Example
from spacy.vocab import Vocab
from thinc.api import Maxout, Model, Optimizer, Softmax, chain, with_array
from thinc.types import Floats2d, Ints1d

from tasks.conversion import run
from tasks.networks import SAMPLE, TINY, bilstm_with_input, docs_layer, reduced

PREDICATES = "predicates"
ARGUMENTS = "arguments"
REACH = 4
PLACES = 2 * REACH + 1
Pieces = tuple[tuple[int, int], ...]


class Argument(NamedTuple):
    """The tokens from `start` to `end` (not included), and their role."""

    start: int
    end: int
    label: str


def predicates(doc: Doc) -> list[int]:
    """Return the indices of the predicates; an empty list if the Doc has no such group."""
    return [span.start for span in doc.spans.get(PREDICATES, [])]


def set_predicates(doc: Doc, frames: Mapping[int, str]) -> None:
    """Mark tokens as predicates.

    Args:
        doc: the Doc of the tokens.
        frames: the frame of each predicate, such as "come.03", by its index.
    """
    spans = [Span(doc, index, index + 1, label=frame) for index, frame in frames.items()]
    doc.spans[PREDICATES] = SpanGroup(doc, name=PREDICATES, spans=spans)


def arguments(doc: Doc) -> dict[int, list[Argument]]:
    """Return the arguments of each predicate by its index, in the order in which they were set."""
    found: dict[int, list[Argument]] = {index: [] for index in predicates(doc)}
    for span in doc.spans.get(ARGUMENTS, []):
        found[int(span.id_)].append(Argument(span.start, span.end, span.label_))
    return found


def set_arguments(doc: Doc, found: Mapping[int, Iterable[Argument]]) -> None:
    """Replace the arguments of a Doc by those of each predicate."""
    spans = [
        Span(doc, start, end, label=label, span_id=str(predicate))
        for predicate, its in found.items()
        for start, end, label in its
    ]
    doc.spans[ARGUMENTS] = SpanGroup(doc, name=ARGUMENTS, spans=spans)


def convert(records: Iterable[dict[str, Any]], nlp: Language) -> Iterator[Doc]:
    """Yield the Docs of sentences that have a predicate."""
    for record in records:
        if record["predicates"]:
            # Without spaces, spaCy's readers keep these tokens, to which the annotation refers.
            doc = Doc(nlp.vocab, words=record["tokens"])
            set_predicates(doc, {each["index"]: each["frame"] for each in record["predicates"]})
            found = {
                each["index"]: [Argument(*a) for a in each["args"]] for each in record["predicates"]
            }
            set_arguments(doc, found)
            yield doc


@spacy.registry.readers("evidence.PredicateCorpus.v1")
def predicate_corpus(path: Path | None, limit: int = 0) -> Callable[[Language], Iterator[Example]]:
    """Return a `spacy.Corpus.v1` that also sets the predicates on the predicted Docs, which spaCy's reader does not."""

    def read(nlp: Language) -> Iterator[Example]:
        for example in Corpus(path, limit=limit)(nlp):
            given = example.reference.spans[PREDICATES]
            set_predicates(example.predicted, {span.start: span.label_ for span in given})
            yield example

    return read


# Arguments as BIO tags: with K labels there are 1 + 2K tags. 0 is O, 1 + 2k begins an argument with label k, and 2 + 2k
# continues it.


def encode(found: Iterable[Argument], length: int, labels: Sequence[str]) -> Ints1d:
    """Return the tags of `length` tokens. Arguments with a label that is not in `labels` are left out."""
    tags = np.zeros(length, dtype="i")
    for start, end, label in found:
        if label in labels:
            begin = 1 + 2 * labels.index(label)
            tags[start] = begin
            tags[start + 1 : end] = begin + 1
    return tags


def decode(tags: Sequence[int], labels: Sequence[str]) -> list[Argument]:
    """Return the arguments of tags, as the inverse of `encode`. A tag that continues an argument must follow a tag with
    the same label, as in every result of `best_path`."""
    found: list[Argument] = []
    for index, tag in enumerate(tags):
        if tag and tag % 2:
            found.append(Argument(index, index + 1, labels[tag // 2]))
        elif tag:
            found[-1] = found[-1]._replace(end=index + 1)
    return found


def best_path(scores: Floats2d) -> list[int]:
    """Return the tags with the highest sum of scores in which an argument continues only after its begin (the Viterbi
    algorithm with the BIO constraints of He et al. 2017).

    Args:
        scores: (n_tokens, n_tags), such as logarithms of probabilities.
    """
    # Any tag may precede a tag, but only the two tags of its label may precede a tag that continues. So two comparisons
    # per tag are enough; a table of all transitions would have the square of the number of tags.
    begin = np.arange(1, scores.shape[1], 2)
    total = scores[0].copy()
    total[2::2] = -np.inf
    steps = np.empty(scores.shape, dtype="i")
    for index in range(1, len(scores)):
        before = steps[index]
        before[:] = total.argmax()
        before[2::2] = np.where(total[1::2] >= total[2::2], begin, begin + 1)
        total = total[before] + scores[index]
    tag = int(total.argmax())
    path = [tag]
    for before in steps[:0:-1]:
        tag = int(before[tag])
        path.append(tag)
    return path[::-1]


def joined(roles: Sequence[Argument]) -> set[tuple[str, Pieces]]:
    """Return arguments joined with their continuations. C-X is a further piece of the nearest X before it; if there is
    none, it is an argument X. A continuation of the predicate itself, C-V, is no argument."""
    whole: list[tuple[str, Pieces]] = []
    for start, end, label in sorted(roles):
        role = label.removeprefix("C-")
        heads = [index for index, (known, _) in enumerate(whole) if known == role]
        if role == label or not heads:
            whole.append((role, ((start, end),)))
        else:
            whole[heads[-1]] = (role, (*whole[heads[-1]][1], (start, end)))
    return {(role, pieces) for role, pieces in whole if role != "V"}


def propositions(doc: Doc) -> set[tuple[int, str, Pieces]]:
    """Return the arguments of all predicates of a Doc, each as (predicate, role, pieces)."""
    return {
        (predicate, role, pieces)
        for predicate, roles in arguments(doc).items()
        for role, pieces in joined(roles)
    }


def score_srl(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score arguments. An argument is correct if its predicate, its role and all its tokens are.

    Returns:
        `srl_p`, `srl_r` and `srl_f` between 0 and 1 over all arguments, and `srl_per_type`, the same for each role.
    """
    total = PRFScore()
    per_type: dict[str, PRFScore] = {}
    for example in examples:
        predicted, gold = propositions(example.predicted), propositions(example.reference)
        total.score_set(predicted, gold)
        for role in {argument[1] for argument in predicted | gold}:
            per_type.setdefault(role, PRFScore()).score_set(
                {argument for argument in predicted if argument[1] == role},
                {argument for argument in gold if argument[1] == role},
            )
    return {
        "srl_p": total.precision,
        "srl_r": total.recall,
        "srl_f": total.fscore,
        "srl_per_type": {role: score.to_dict() for role, score in sorted(per_type.items())},
    }


@spacy.registry.architectures("evidence.PredicateTagger.v1")
def predicate_tagger(
    tok2vec: Model[list[Doc], list[Floats2d]], hidden_width: int, depth: int
) -> Model[list[Doc], list[Floats2d]]:
    """Return a model of tag probabilities, (n_tokens, n_tags) for each predicate, in the order of Docs and predicates.

    As in He et al. (2017), whose deep LSTM is the paper's baseline, a bidirectional LSTM processes the sentence once
    for each predicate, with a mark of the predicate. The model is simplified, for minutes of training instead of
    hundreds of epochs: it has `depth` layers instead of 8, after a `tok2vec` that all predicates share. The input of
    each token also has the vector of the predicate and the distance from it (Collobert et al. 2011).

    Args:
        tok2vec: model of the vectors of tokens.
        hidden_width: width of the output of the LSTM, both directions together. The vectors of a token and of its
            predicate each have half of this width.
        depth: number of LSTM layers.
    """
    width = hidden_width // 2
    model: Model[list[Doc], list[Floats2d]] = chain(
        docs_layer("seen-from-predicates", _seen_from_predicates, reduced(tok2vec, width)),
        bilstm_with_input(hidden_width, 2 * width + PLACES, depth),
        with_array(Maxout(nO=hidden_width, nP=3, normalize=True, dropout=0.0)),
        with_array(Softmax()),
    )
    model.set_ref("tok2vec", tok2vec)
    return model


def _seen_from_predicates(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    """Return [token ; predicate ; place] for the tokens of a Doc, once for each of its predicates.

    The place is the one-hot position of the token relative to the predicate, with `PLACES` columns. The middle column
    is the predicate itself; the first and last columns are for all tokens farther away.
    """
    xp = model.ops.xp
    vectors, backprop_vectors = model.layers[0](docs, is_train)
    places = [(row, index) for row, doc in enumerate(docs) for index in predicates(doc)]
    views = []
    for row, index in places:
        tokens = vectors[row]
        distance = xp.arange(len(tokens)) - index
        place = xp.eye(PLACES, dtype="f")[distance.clip(-REACH, REACH) + REACH]
        views.append(xp.hstack([tokens, xp.broadcast_to(tokens[index], tokens.shape), place]))

    def backprop(d_views: list[Floats2d]) -> list[Doc]:
        d_vectors = [model.ops.alloc2f(*tokens.shape) for tokens in vectors]
        for (row, index), d_view in zip(places, d_views, strict=True):
            width = vectors[row].shape[1]
            d_vectors[row] += d_view[:, :width]
            d_vectors[row][index] += d_view[:, width : 2 * width].sum(axis=0)
        return backprop_vectors(d_vectors)

    return views, backprop


@Language.factory(
    "srl",
    assigns=["doc.spans"],
    default_score_weights={"srl_f": 1.0, "srl_p": 0.0, "srl_r": 0.0, "srl_per_type": None},
)
def make_srl(
    nlp: Language, name: str, model: Model[list[Doc], list[Floats2d]]
) -> "SemanticRoleLabeler":
    """Make the component from an `evidence.PredicateTagger.v1`."""
    return SemanticRoleLabeler(nlp.vocab, model, name)


class SemanticRoleLabeler(TrainablePipe):
    """Component that predicts BIO tags of all tokens for each predicate, and converts them to arguments.

    As in the paper, the predicates are given: `doc.spans["predicates"]` must be set before. A Doc without predicates
    gets no arguments.
    """

    scorer = staticmethod(score_srl)

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats2d]],
        name: str = "srl",
    ) -> None:
        self.vocab = vocab
        self.model = model
        self.name = name
        self.cfg: dict[str, Any] = {"labels": []}

    @property
    def labels(self) -> tuple[str, ...]:
        """The roles that the component predicts."""
        return tuple(self.cfg["labels"])

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Collect the roles of all examples, and initialize the model with a few examples."""
        references = (example.reference for example in get_examples())
        self.cfg["labels"] = sorted(
            {
                label
                for doc in references
                for found in arguments(doc).values()
                for *_, label in found
            }
        )
        docs = (example.predicted for example in get_examples() if predicates(example.predicted))
        sample = list(islice(docs, SAMPLE))
        tags = self.model.ops.alloc2f(1, 1 + 2 * len(self.labels))
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
        return decode(best_path(np.log(tags + TINY)), self.labels)

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
            loss -= float(np.log(ops.to_numpy(probabilities)[correct] + TINY).sum()) / total
            gradient = probabilities.copy()
            gradient[correct] -= 1
            gradients.append(gradient / total)
        return loss, gradients


if __name__ == "__main__":
    run(convert, __doc__)

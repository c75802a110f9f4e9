"""A dependency parser that scores all arcs of a sentence and takes the best tree."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.attrs import DEP, HEAD
from spacy.errors import Errors
from spacy.language import Language
from spacy.pipeline.trainable_pipe import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, get_array_module, set_dropout_rate, to_numpy

from .biaffine_model import Scores, Sentences


class BiaffineParser(TrainablePipe):
    """The component that `make_biaffine_parser` creates: a graph-based parser as in UDPipe 2 (Straka 2018).

    A Doc without sentences is an error (E030), because one tree for all of its sentences would be wrong. In training,
    the sentences are those of the reference, whatever those of the predicted Doc. Words without a gold head are not in
    the loss, which is the cross-entropy of the heads plus that of the labels of the gold arcs. Whitespace tokens have
    no scores. They depend on the word before them; on the first word, if they begin the sentence.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[Sentences, Scores],
        name: str = "biaffine_parser",
        *,
        label_smoothing: float = 0.0,
        scorer: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(vocab, model, name, labels=[])
        self.label_smoothing = label_smoothing
        self.scorer = scorer

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the scores."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> tuple[str, ...]:
        """The labels for `initialize`, as `spacy init labels` writes them."""
        return self.labels

    def add_label(self, label: str) -> int:
        """Add a label, before the model is initialized. Return 1; 0 if it is there already."""
        if label in self.labels:
            return 0
        self._allow_extra_label()
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        return 1

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Iterable[str] | None = None,
    ) -> None:
        """Make the labels, and initialize the model.

        Args:
            get_examples: returns the training data, or a sample of it.
            nlp: the pipeline.
            labels: the result of `label_data`; None: the labels of the examples.
        """
        validate_get_examples(get_examples, "BiaffineParser.initialize")
        if labels is None:
            references = (example.reference for example in get_examples())
            labels = sorted({token.dep_ for doc in references for token in doc} - {""})
        for label in labels:
            self.add_label(label)
        self._require_labels()
        self.model.set_dim("nO", len(self.labels))
        docs = [example.predicted for example in itertools.islice(get_examples(), 10)]
        self.model.initialize(X=Sentences(docs, []))

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Add the gradients of some examples to those of the model; see `TrainablePipe.update`."""
        examples = list(examples)
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        validate_examples(examples, "BiaffineParser.update")
        docs = [example.predicted for example in examples]
        if not any(len(doc) for doc in docs):
            return losses
        gold = list(self._gold_sentences(examples))
        words = [sentence.words for sentence in gold]
        # The label of a missing arc is scored, but it is not in the loss.
        heads = [np.maximum(sentence.heads, 0) for sentence in gold]
        set_dropout_rate(self.model, drop)
        scores, backprop = self.model.begin_update(Sentences(docs, words, heads))
        loss, gradient = self._loss(gold, scores)
        backprop(gradient)
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def _loss(self, gold: list[_GoldSentence], scores: Scores) -> tuple[float, Scores]:
        """Return the loss, summed over all words, and its gradient."""
        labels = np.concatenate([np.zeros(0, int), *(sentence.labels for sentence in gold)])
        loss, d_labels = cross_entropy(scores.labels, labels, self.label_smoothing)
        d_arcs = []
        for arcs, sentence in zip(scores.arcs, gold, strict=True):
            more, gradient = cross_entropy(arcs, sentence.heads, self.label_smoothing)
            loss += more
            d_arcs.append(gradient)
        if np.isnan(float(loss)):
            raise ValueError(Errors.E910.format(name=self.name))
        return float(loss), Scores(d_arcs, d_labels, scores.heads)

    def _gold_sentences(self, examples: Iterable[Example]) -> Iterator[_GoldSentence]:
        """Yield the sentences that have a gold head."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        first = 0
        for example in examples:
            doc = example.predicted
            if len(doc) and example.reference.has_annotation("DEP"):
                heads, deps = example.get_aligned_parse(projectivize=False)
                starts = np.flatnonzero(example.get_aligned_sent_starts()).tolist()
                for start, end in itertools.pairwise(sorted({0, *starts, len(doc)})):
                    words = _words(doc[start:end])
                    position = {word: number for number, word in enumerate(words.tolist())}
                    # spaCy has no value for a missing head: it is a head without a label.
                    own = [position.get(heads[word], -1) if deps[word] else -1 for word in position]
                    labels = [
                        numbers.get(deps[word], -1) if head >= 0 else -1
                        for word, head in zip(position, own, strict=True)
                    ]
                    if max(own) >= 0:
                        yield _GoldSentence(first + words, np.array(own), np.array(labels))
            first += len(doc)

    def predict(self, docs: Iterable[Doc]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the heads and the labels of the tokens of each Doc, (n_tokens,): indices of tokens of the Doc, and
        hashes."""
        docs = list(docs)
        root, dep, *hashes = map(self.vocab.strings.add, ("ROOT", "dep", *self.labels))
        parses = [
            (np.zeros(len(doc), dtype="int64"), np.full(len(doc), dep, dtype="uint64"))
            for doc in docs
        ]
        if not any(len(doc) for doc in docs):
            return parses
        sentences = [(number, own) for number, doc in enumerate(docs) for own in doc.sents]
        words = [_words(sentence) for _, sentence in sentences]
        firsts = [0, *itertools.accumulate(map(len, docs))]
        in_batch = [firsts[n] + own for (n, _), own in zip(sentences, words, strict=True)]
        scores = self.model.predict(Sentences(docs, in_batch))
        of_labels = to_numpy(scores.labels)
        of_labels[:, [label == "ROOT" for label in self.labels]] = -np.inf
        best = np.array(hashes, dtype="uint64")[of_labels.argmax(axis=1)]
        labels = np.split(best, np.cumsum([len(own) for own in words])[:-1])
        parsed = zip(sentences, words, scores.heads, labels, strict=True)
        for (number, sentence), own, own_heads, own_labels in parsed:
            heads, deps = parses[number]
            # A whitespace token depends on the word before it.
            before = np.searchsorted(own, np.arange(sentence.start, sentence.end), "right") - 1
            heads[sentence.start : sentence.end] = own[np.maximum(before, 0)]
            heads[own] = own[own_heads]
            deps[own] = np.where(heads[own] == own, root, own_labels)
        return parses

    def set_annotations(
        self, docs: Iterable[Doc], parses: list[tuple[np.ndarray, np.ndarray]]
    ) -> None:
        """Set the heads and labels that `predict` has returned."""
        for doc, (heads, deps) in zip(docs, parses, strict=True):
            if len(doc):
                relative = (heads - np.arange(len(doc))).astype("uint64")
                columns: Any = np.stack([relative, deps], axis=1)
                doc.from_array([HEAD, DEP], columns)


@dataclass(frozen=True)
class _GoldSentence:
    words: np.ndarray
    """The indices of the words in the concatenated Docs of the batch."""
    heads: np.ndarray
    """The index in the sentence of the head of each word; -1: missing."""
    labels: np.ndarray
    """The number of the label of each word; -1: missing."""


def _words(sentence: Span) -> np.ndarray:
    """Return the indices in the Doc of the words of a sentence. Of a sentence of whitespace, the first token is one."""
    return np.array([token.i for token in sentence if not token.is_space] or [sentence.start])


def cross_entropy(scores: Any, gold: np.ndarray, smoothing: float) -> tuple[Any, Any]:
    """Return the cross-entropy of the softmax of scores, summed over all rows, and its gradient.

    Args:
        scores: (rows, classes).
        gold: the class of each row; -1: missing, the row has no loss and a gradient of 0.
        smoothing: share of the gold probability that all classes have in common (Szegedy et al. 2016).
    """
    xp = get_array_module(scores)
    scores = scores - scores.max(axis=1, keepdims=True)
    logs = scores - xp.log(xp.exp(scores).sum(axis=1, keepdims=True))
    targets = xp.full_like(scores, smoothing / scores.shape[1])
    targets[xp.arange(len(gold)), xp.asarray(gold)] += 1 - smoothing
    targets *= xp.asarray(gold >= 0)[:, None]
    return -(targets * logs).sum(), (xp.exp(logs) * targets.sum(1, keepdims=True)) - targets

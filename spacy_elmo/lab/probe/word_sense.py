"""Word-sense probe, which predicts word senses by nearest neighbor in each layer."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..corpora.senses import SenseInstance, SenseSentence, entry_of
from ..search.normalize import normalize
from .layers import LayerReader


@dataclass(frozen=True)
class SenseScores:
    """F1 scores of a word-sense probe on a text, between 0 and 1; nan if the text has no annotated senses."""

    instances: int
    """Number of annotated words."""
    seen: int
    """Number of annotated words whose lexicon entry (lemma and part of speech) occurs in training."""
    ambiguous: int
    """Number of annotated words whose lexicon entry has several senses in training. Only for these words can the
    predictions of the layers differ."""
    layers: list[float]
    """F1 of each layer, starting with the context-free layer 0."""
    most_frequent: float
    """F1 of a baseline that predicts the most frequent sense in training."""
    first: float | None
    """F1 of a baseline that predicts WordNet's first sense; None if first senses were not given."""


@dataclass(frozen=True)
class Answers:
    """Correctness of the senses that A methods predict for n words.

    The methods are the nearest sense in each layer, the most frequent sense in training, and WordNet's first
    sense.
    """

    correct: np.ndarray
    """True if the predicted sense is correct, (n, A) bool."""
    answered: np.ndarray
    """True if the method predicts a sense, (n, A) bool."""
    senses: np.ndarray
    """Number of senses that the lexicon entry of each word has in training, (n,) int."""
    first_known: bool
    """True if WordNet's first senses were given."""

    def __add__(self, other: Answers) -> Answers:
        return Answers(
            np.concatenate([self.correct, other.correct]),
            np.concatenate([self.answered, other.answered]),
            np.concatenate([self.senses, other.senses]),
            self.first_known,
        )

    def scores(self) -> SenseScores:
        """Return the F1 scores of the predictions."""
        # F1 = 2PR / (P + R), with P = correct / answered and R = correct / n.
        with np.errstate(invalid="ignore"):
            f1 = 2 * self.correct.sum(0) / (self.answered.sum(0) + len(self.correct))
        layers, most_frequent, first = f1[:-2].tolist(), float(f1[-2]), float(f1[-1])
        return SenseScores(
            instances=len(self.correct),
            seen=int((self.senses > 0).sum()),
            ambiguous=int((self.senses > 1).sum()),
            layers=layers,
            most_frequent=most_frequent,
            first=first if self.first_known else None,
        )


class NearestSense:
    """Classifier that predicts the sense of a word by the nearest sense vector, in each layer.

    Peters et al. 2018, section 5.3, use the same method (after Melamud et al. 2016). In each layer, the
    vector of a sense is the mean vector of the occurrences of the sense in training. The classifier compares
    a word with the senses of its lexicon entry (lemma and part of speech), and predicts the sense with the
    highest cosine. If an occurrence consists of several words, its vector is the mean of the vectors of these
    words.

    If the lexicon entry does not occur in training, the classifier predicts WordNet's first sense. If
    `first_senses` lacks the entry, too, the classifier predicts no sense. Precision ignores words without a
    predicted sense, and recall counts these words as errors.

    Args:
        reader: function that computes the layers of sentences.
        sentences: annotated training sentences.
        first_senses: WordNet's first sense of each lexicon entry, from `read_first_senses`.

    Raises:
        ValueError: no word of the sentences has a sense.
    """

    def __init__(
        self,
        reader: LayerReader,
        sentences: Iterable[SenseSentence],
        first_senses: Mapping[str, str] | None = None,
    ) -> None:
        self._reader = reader
        self._first_senses = first_senses
        counts: Counter[str] = Counter()
        # Sums suffice: the cosine depends only on the direction, and the sum has the direction of the mean.
        sums: dict[str, np.ndarray] = {}
        for instance, vectors in self._occurrences(sentences):
            sense = instance.senses[0]
            counts[sense] += 1
            sums[sense] = sums[sense] + vectors if sense in sums else vectors
        if not counts:
            raise ValueError(
                "No word of the training text has a sense. Use text with annotated senses"
            )
        self._senses: dict[str, list[str]] = {}
        for sense, _ in counts.most_common():  # equally frequent senses are in order of occurrence
            self._senses.setdefault(entry_of(sense), []).append(sense)
        self._vectors = {
            entry: normalize(np.stack([sums.pop(sense) for sense in senses], axis=1))
            for entry, senses in self._senses.items()
        }

    def answer(self, sentences: Iterable[SenseSentence]) -> Answers:
        """Predict the senses of annotated text, and compare them with the annotation.

        As usual in this task, the lexicon entry of each word is taken from the annotation. A prediction is
        correct if the predicted sense is one of the annotated senses.
        """
        correct, answered, senses = [], [], []
        for instance, vectors in self._occurrences(sentences):
            entry = entry_of(instance.senses[0])
            predictions = self._predict(entry, vectors)
            correct.append([sense in instance.senses for sense in predictions])
            answered.append([sense is not None for sense in predictions])
            senses.append(len(self._senses.get(entry, ())))
        shape = (-1, self._reader.layers + 2)  # L + 1 layers
        return Answers(
            np.array(correct, dtype=bool).reshape(shape),
            np.array(answered, dtype=bool).reshape(shape),
            np.array(senses, dtype=np.int64),
            self._first_senses is not None,
        )

    def _predict(self, entry: str, vectors: np.ndarray) -> list[str | None]:
        """Predict the sense of a word by each method, in the order of `Answers`; None: the method predicts no
        sense.

        Args:
            entry: lexicon entry of the word (lemma and part of speech).
            vectors: vector of the word in each layer, (layers, width).
        """
        first = (self._first_senses or {}).get(entry)
        if entry not in self._senses:
            return [first] * (len(vectors) + 2)
        senses = self._senses[entry]
        # The word's vector is not normalized, because its length does not change which sense is nearest.
        nearest = np.einsum("lsw,lw->ls", self._vectors[entry], vectors).argmax(1)
        return [*(senses[sense] for sense in nearest.tolist()), senses[0], first]

    def _occurrences(
        self, sentences: Iterable[SenseSentence]
    ) -> Iterator[tuple[SenseInstance, np.ndarray]]:
        """Yield each annotated word, and its vector in each layer, (layers, width)."""
        sentences, inputs = itertools.tee(sentences)
        layers = self._reader(sentence.words for sentence in inputs)
        for sentence, vectors in zip(sentences, layers, strict=True):
            for instance in sentence.instances:
                yield instance, vectors[:, instance.start : instance.end].mean(1, dtype=np.float32)

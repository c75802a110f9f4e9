"""Word-sense probe: senses predicted from each layer by nearest neighbor."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...corpora.senses import SenseInstance, SenseSentence, entry_of
from ...search.normalize import normalize
from .layers import LayerReader


@dataclass(frozen=True)
class SenseScores:
    """F1 scores between 0 and 1 of the predicted senses of a text; nan for a text without senses."""

    instances: int
    """Number of annotated words."""
    seen: int
    """Number of words whose lexicon entry (lemma and part of speech) occurs in training."""
    ambiguous: int
    """Number of words whose entry occurs in training with several senses: only on these can layers differ."""
    layers: list[float]
    """F1 of each layer, 0 to L."""
    most_frequent: float
    """F1 of the most frequent sense in training."""
    first: float | None
    """F1 of WordNet's first sense; None if first senses are not known."""


@dataclass(frozen=True)
class Answers:
    """Results for n words by A = L + 3 methods: the layers 0 to L, the most frequent sense in training, and WordNet's
    first sense."""

    correct: np.ndarray
    """(n, A) bool: the predicted sense is correct."""
    answered: np.ndarray
    """(n, A) bool: the method predicts a sense."""
    senses: np.ndarray
    """(n,) int, the number of senses of the word's entry in training."""
    first_known: bool
    """True if WordNet's first senses are known."""

    def __add__(self, other: Answers) -> Answers:
        return Answers(
            np.concatenate([self.correct, other.correct]),
            np.concatenate([self.answered, other.answered]),
            np.concatenate([self.senses, other.senses]),
            self.first_known,
        )

    def scores(self) -> SenseScores:
        """Return the scores of the results."""
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
    """Classifier that assigns a word the sense with the nearest vector, in each layer.

    The procedure is that of Peters et al. 2018, section 5.3 (after Melamud et al. 2016). In each layer, the vector of a
    sense is the mean of its occurrences in training, and a word is assigned the sense with the highest cosine among
    those of its entry (lemma and part of speech). A word whose entry does not occur in training is assigned WordNet's
    first sense, if that is known, or no sense, which precision ignores and recall counts as an error.

    The vector of several words that are one entry is the mean of their vectors.

    Args:
        reader: function from sentences to their layers.
        sentences: annotated training sentences.
        first_senses: WordNet's first senses, see `read_first_senses`.

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
        # The sum has the direction of the mean, and the cosine depends on nothing else.
        sums: dict[str, np.ndarray] = {}
        for instance, vectors in self._occurrences(sentences):
            sense = instance.senses[0]
            counts[sense] += 1
            sums[sense] = sums[sense] + vectors if sense in sums else vectors
        if not counts:
            raise ValueError("No word of the training text has a sense; there is nothing to learn")
        self._senses: dict[str, list[str]] = {}
        for sense, _ in counts.most_common():  # equally frequent senses stay in order of occurrence
            self._senses.setdefault(entry_of(sense), []).append(sense)
        self._vectors = {
            entry: normalize(np.stack([sums.pop(sense) for sense in senses], axis=1))
            for entry, senses in self._senses.items()
        }

    def answer(self, sentences: Iterable[SenseSentence]) -> Answers:
        """Predict the senses of annotated text; the entry of each word is given by the annotation, as in the task.

        A prediction is correct if it is one of the annotated senses.
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
        """Return the senses of a word with (layers, width) vectors, in the order of `Answers`; None: no sense."""
        first = (self._first_senses or {}).get(entry)
        if entry not in self._senses:
            return [first] * (len(vectors) + 2)
        senses = self._senses[entry]
        # The length of the word's vector does not change which sense is nearest.
        nearest = np.einsum("lsw,lw->ls", self._vectors[entry], vectors).argmax(1)
        return [*(senses[sense] for sense in nearest.tolist()), senses[0], first]

    def _occurrences(
        self, sentences: Iterable[SenseSentence]
    ) -> Iterator[tuple[SenseInstance, np.ndarray]]:
        """Yield every annotated word, and its (layers, width) vectors."""
        sentences, inputs = itertools.tee(sentences)
        layers = self._reader(sentence.words for sentence in inputs)
        for sentence, vectors in zip(sentences, layers, strict=True):
            for instance in sentence.instances:
                yield instance, vectors[:, instance.start : instance.end].mean(1, dtype=np.float32)

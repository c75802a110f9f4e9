"""Word senses by nearest neighbour: which layer tells the senses of a word apart."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...corpora.senses import SenseInstance, SenseSentence, entry_of
from ...search.unit import unit
from .layers import LayerReader


@dataclass(frozen=True)
class SenseScores:
    """How well the senses of a text were found. F1 is a share of 1, and nan for a text without senses."""

    instances: int
    """Words to be given a sense."""
    seen: int
    """Those whose entry of the lexicon (lemma and part of speech) has occurred in training."""
    ambiguous: int
    """Those whose entry has occurred in training with several senses: only here can layers differ."""
    layers: list[float]
    """F1 by the vectors of each layer, 0 to L."""
    most_frequent: float
    """F1 of the sense that was most frequent in training."""
    first: float | None
    """F1 of WordNet's first sense; None: it is not known."""


@dataclass(frozen=True)
class Answers:
    """What was answered for n words in A = L + 3 ways: by the layers 0 to L, the most frequent sense in training, and
    WordNet's first sense."""

    right: np.ndarray
    """(n, A) bool."""
    given: np.ndarray
    """(n, A) bool: there was an answer at all."""
    senses: np.ndarray
    """(n,) int, of the word's entry in training."""
    first_known: bool
    """Whether first senses are known."""

    def __add__(self, other: Answers) -> Answers:
        return Answers(
            np.concatenate([self.right, other.right]),
            np.concatenate([self.given, other.given]),
            np.concatenate([self.senses, other.senses]),
            self.first_known,
        )

    def scores(self) -> SenseScores:
        """The figures."""
        # F1 = 2PR / (P + R), with P = right / given and R = right / n.
        with np.errstate(invalid="ignore"):
            f1 = 2 * self.right.sum(0) / (self.given.sum(0) + len(self.right))
        layers, most_frequent, first = f1[:-2].tolist(), float(f1[-2]), float(f1[-1])
        return SenseScores(
            instances=len(self.right),
            seen=int((self.senses > 0).sum()),
            ambiguous=int((self.senses > 1).sum()),
            layers=layers,
            most_frequent=most_frequent,
            first=first if self.first_known else None,
        )


class NearestSense:
    """Gives a word the sense whose vector is nearest, in each layer.

    The procedure of Peters et al. 2018, section 5.3 (after Melamud et al. 2016): in each layer, a sense is the mean of
    the vectors of its occurrences in training, and a word gets the sense with the highest cosine among those that its
    entry (lemma and part of speech) had there. A word whose entry did not occur gets WordNet's first sense, where that
    is known, or no answer, which precision passes over and recall counts as a mistake.

    The vector of several words that are one entry is the mean of theirs.

    Args:
        read: reads the sentences.
        sentences: annotated with the senses to learn.
        first_senses: WordNet's, as of `read_first_senses`.

    Raises:
        ValueError: no word of the sentences has a sense.
    """

    def __init__(
        self,
        read: LayerReader,
        sentences: Iterable[SenseSentence],
        first_senses: Mapping[str, str] | None = None,
    ) -> None:
        self._read = read
        self._first_senses = first_senses
        counts: Counter[str] = Counter()
        # A sum has the direction of the mean, and the cosine looks at nothing else.
        sums: dict[str, np.ndarray] = {}
        for instance, vectors in self._occurrences(sentences):
            sense = instance.senses[0]
            counts[sense] += 1
            sums[sense] = sums[sense] + vectors if sense in sums else vectors
        if not counts:
            raise ValueError("No word of the training text has a sense; nothing to learn from")
        self._senses: dict[str, list[str]] = {}
        for sense, _ in counts.most_common():  # of equals, the first that came
            self._senses.setdefault(entry_of(sense), []).append(sense)
        self._vectors = {
            entry: unit(np.stack([sums.pop(sense) for sense in senses], axis=1))
            for entry, senses in self._senses.items()
        }

    def answer(self, sentences: Iterable[SenseSentence]) -> Answers:
        """Find the senses of annotated text, whose annotation says of which entry a word is: the task states it.

        An answer is right if it is one of the senses annotated.
        """
        right, given, senses = [], [], []
        for instance, vectors in self._occurrences(sentences):
            entry = entry_of(instance.senses[0])
            answers = self._answers(entry, vectors)
            right.append([answer in instance.senses for answer in answers])
            given.append([answer is not None for answer in answers])
            senses.append(len(self._senses.get(entry, ())))
        shape = (-1, self._read.layers + 2)  # L + 1 layers
        return Answers(
            np.array(right, dtype=bool).reshape(shape),
            np.array(given, dtype=bool).reshape(shape),
            np.array(senses, dtype=np.int64),
            self._first_senses is not None,
        )

    def _answers(self, entry: str, vectors: np.ndarray) -> list[str | None]:
        """In the order of `Answers`, of a word with (layers, width) vectors; None: no answer."""
        first = (self._first_senses or {}).get(entry)
        if entry not in self._senses:
            return [first] * (len(vectors) + 2)
        senses = self._senses[entry]
        # The length of the word's own vector is the same for every sense.
        nearest = np.einsum("lsw,lw->ls", self._vectors[entry], vectors).argmax(1)
        return [*(senses[sense] for sense in nearest.tolist()), senses[0], first]

    def _occurrences(
        self, sentences: Iterable[SenseSentence]
    ) -> Iterator[tuple[SenseInstance, np.ndarray]]:
        """Every word that has a sense, and its vectors (layers, width)."""
        sentences, read = itertools.tee(sentences)
        layers = self._read(sentence.words for sentence in read)
        for sentence, vectors in zip(sentences, layers, strict=True):
            for instance in sentence.instances:
                yield instance, vectors[:, instance.start : instance.end].mean(1, dtype=np.float32)

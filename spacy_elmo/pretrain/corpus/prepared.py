"""A prepared corpus on disk, and the batches of an epoch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..config import Prepare

FORMAT = "spacy-elmo corpus 1"
_IDS_PER_READ = 1 << 22


class PartFiles(NamedTuple):
    """File names of one part of a prepared corpus."""

    ids: str
    offsets: str


FILES = {name: PartFiles(f"{name}-ids.npy", f"{name}-offsets.npy") for name in ("train", "dev")}


@dataclass(frozen=True)
class Sentences:
    """Sentences as ids of types, end to end."""

    ids: np.ndarray
    """(words,) int32, memory-mapped."""
    offsets: np.ndarray
    """(sentences + 1,) int64: sentence i is ids[offsets[i]:offsets[i + 1]]."""

    @property
    def lengths(self) -> np.ndarray:
        """(sentences,) words of each."""
        return np.diff(self.offsets)

    def pieces(self) -> Iterator[np.ndarray]:
        """All ids in their order, in pieces, so that a corpus larger than memory is only read through."""
        for start in range(0, len(self.ids), _IDS_PER_READ):
            yield self.ids[start : start + _IDS_PER_READ]

    def cut(self, max_length: int) -> Sentences:
        """The same words, sentences longer than `max_length` cut into pieces of at most that."""
        pieces = -(-self.lengths // max_length)
        starts = np.repeat(self.offsets[:-1], pieces)
        place = np.arange(len(starts)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        return Sentences(self.ids, np.append(starts + place * max_length, self.offsets[-1]))

    def first(self, words: int) -> Sentences:
        """The sentences from the start that together have at least `words` words, or all."""
        end = int(np.searchsorted(self.offsets, words)) + 1
        return Sentences(self.ids, self.offsets[:end])

    def words(self, rows: np.ndarray) -> int:
        """Words of these sentences together."""
        return int((self.offsets[rows + 1] - self.offsets[rows]).sum())

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(words of these sentences, end to end; (len(rows),) their lengths)."""
        # Not `self.lengths`: a step wants a hundred rows, not the differences of millions.
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(
            starts - (ends - lengths), lengths
        )
        return self.ids[places], lengths


class Dropped(NamedTuple):
    """What `dedup` took from the training text."""

    sentences: int = 0
    words: int = 0


@dataclass(frozen=True)
class Corpus:
    """What `prepare` wrote."""

    types: list[str]
    """`<S>`, `</S>`, `<UNK>`, then every type by falling count in the training part."""
    counts: np.ndarray
    """(types,) occurrences in the training part."""
    train: Sentences
    dev: Sentences
    lang: str
    """Language of the tokenizer."""
    tokenizer: str
    """What made the words, as the card of weights says it."""
    dropped: Dropped

    @classmethod
    def open(cls, folder: str | Path) -> Corpus:
        """Map a prepared corpus.

        Raises:
            FileNotFoundError: the folder or one of its files is missing.
            ValueError: the folder is of another format, or damaged.
        """
        folder = Path(folder)
        if not (folder / "corpus.json").is_file():
            raise FileNotFoundError(
                f"No prepared corpus at {folder}: `python -m spacy elmo prepare` makes one"
            )
        try:
            return cls._read(folder)
        except (ValueError, LookupError, TypeError, EOFError) as error:
            raise ValueError(
                f"{folder}: damaged, or no corpus of this version ({error}). Delete it and prepare it again"
            ) from error

    @classmethod
    def _read(cls, folder: Path) -> Corpus:
        statement = json.loads((folder / "corpus.json").read_text(encoding="utf8"))
        if not isinstance(statement, dict) or statement.get("format") != FORMAT:
            raise ValueError(f"corpus.json: expected format {FORMAT!r}, found {statement!r:.100}")
        types = (folder / "types.txt").read_bytes().decode("utf8", "surrogatepass").split("\n")
        counts = np.load(folder / "counts.npy")
        if len(types) != len(counts):
            raise ValueError(f"{len(types)} types in types.txt, {len(counts)} in counts.npy")
        parts = {name: _part(folder, name, len(types)) for name in FILES}
        settings = Prepare(**statement["prepare"])
        return cls(
            types,
            counts,
            **parts,
            lang=settings.lang,
            tokenizer=settings.made_by,
            # A corpus made before there was `dedup` says nothing of it.
            dropped=Dropped(**statement.get("dropped", {})),
        )

    def vocabulary(self, size: int) -> list[str]:
        """The words of a softmax of `size` classes; fewer, if fewer types were seen in training."""
        seen = 3 + int((self.counts[3:] > 0).sum())
        return self.types[: min(size, seen)]


def _part(folder: Path, name: str, types: int) -> Sentences:
    files = FILES[name]
    part = Sentences(np.load(folder / files.ids, mmap_mode="r"), np.load(folder / files.offsets))
    if len(part.ids) != part.offsets[-1]:
        raise ValueError(f"{name} has {len(part.ids)} words, its offsets say {part.offsets[-1]}")
    largest = max((int(ids.max()) for ids in part.pieces()), default=-1)
    if largest >= types:
        raise ValueError(f"{name} has a word of type {largest}, types.txt has {types} types")
    return part


class Epoch:
    """The batches of one pass over the corpus: sentences of like length, in an order drawn from (seed, epoch).

    Sentences are shuffled, dealt into pools of a hundred batches, sorted by length within a pool and cut
    into batches, which are shuffled again. Any batch can be had by its number, so a position is a number.
    """

    _BATCHES_PER_POOL = 100

    def __init__(self, sentences: Sentences, *, batch_tokens: int, seed: int, epoch: int) -> None:
        random = np.random.default_rng([seed, epoch])
        rows = random.permutation(len(sentences.lengths))
        lengths = sentences.lengths[rows]
        pool = (np.cumsum(lengths) - lengths) // (self._BATCHES_PER_POOL * batch_tokens)
        by_length = np.lexsort((lengths, pool))
        self._rows = rows[by_length]
        lengths, pool = lengths[by_length], pool[by_length]
        words = np.cumsum(lengths) - lengths
        first_of_pool = np.searchsorted(pool, pool)
        number = (words - words[first_of_pool]) // batch_tokens
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (np.diff(pool) != 0) | (np.diff(number) != 0)
        self._borders = np.append(np.flatnonzero(new), len(rows))
        self._order = random.permutation(len(self._borders) - 1)

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, number: int) -> np.ndarray:
        """Rows of the sentences of a batch."""
        batch = self._order[number]
        return self._rows[self._borders[batch] : self._borders[batch + 1]]

"""Prepared corpora (tokenized text as word ids), and the batches of sentences from which a biLM learns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..bilm.likelihood import softmax_classes
from ..bilm.model import BiLM
from ..bilm.spelling import UNK, Spelling
from ..digest import file_digest, json_digest
from .config import Prepare

FORMAT = "spacy-elmo corpus 1"
DESCRIPTION = "corpus.json"
"""Name of the JSON file with the settings of a prepared corpus and the checksums of its files."""
TYPES, COUNTS = "types.txt", "counts.npy"
_IDS_PER_READ = 1 << 22


class PartFiles(NamedTuple):
    """File names of one part of a prepared corpus (training or held-out part)."""

    ids: str
    offsets: str


FILES = {name: PartFiles(f"{name}-ids.npy", f"{name}-offsets.npy") for name in ("train", "dev")}
DATA_FILES = (TYPES, COUNTS, *(file for part in FILES.values() for file in part))
"""Names of all files of a prepared corpus except the description."""


@dataclass(frozen=True)
class Sentences:
    """Sentences of a prepared corpus, concatenated to one array of word ids."""

    ids: np.ndarray
    """Word ids of all sentences, (words,) int32, memory-mapped."""
    offsets: np.ndarray
    """Borders of the sentences, (sentences + 1,) int64: sentence i is ids[offsets[i]:offsets[i + 1]]."""

    @property
    def lengths(self) -> np.ndarray:
        """Number of words of each sentence, (sentences,)."""
        return np.diff(self.offsets)

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the word ids in chunks, because a corpus can be larger than memory."""
        for start in range(0, len(self.ids), _IDS_PER_READ):
            yield self.ids[start : start + _IDS_PER_READ]

    def cut(self, max_length: int) -> Sentences:
        """Return the sentences, with longer ones split into sentences of at most `max_length` words."""
        splits = -(-self.lengths // max_length)
        starts = np.repeat(self.offsets[:-1], splits)
        number = np.arange(len(starts)) - np.repeat(np.cumsum(splits) - splits, splits)
        return Sentences(self.ids, np.append(starts + number * max_length, self.offsets[-1]))

    def first(self, words: int) -> Sentences:
        """Return the first sentences, up to that at which the total reaches `words` words."""
        end = int(np.searchsorted(self.offsets, words)) + 1
        return Sentences(self.ids, self.offsets[:end])

    def count_words(self, rows: np.ndarray) -> int:
        """Return the total number of words in the sentences with the indices `rows`."""
        return int((self.offsets[rows + 1] - self.offsets[rows]).sum())

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the word ids of the sentences with the indices `rows`, concatenated, and their lengths."""
        # `self.lengths` would compute millions of differences, but a step needs only about a hundred.
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        ends = np.cumsum(lengths)
        positions = np.arange(ends[-1] if len(ends) else 0)
        return self.ids[positions + np.repeat(starts - (ends - lengths), lengths)], lengths


@dataclass(frozen=True)
class Corpus:
    """A prepared corpus: the distinct words, the training part and the held-out part."""

    types: list[str]
    """Distinct words: `<S>`, `</S>`, `<UNK>`, then all other words by decreasing count in the training
    part."""
    counts: np.ndarray
    """Number of occurrences of each distinct word in the training part, (len(types),) int64."""
    train: Sentences
    dev: Sentences
    lang: str
    """Language of the tokenizer."""
    tokenizer: str
    """Description of the tokenizer for the model card of weights."""
    spelling: Spelling
    """The spelling rule that was applied to the words."""

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = True) -> Corpus:
        """Open a prepared corpus. The word ids are memory-mapped. If `verify` is true, read all files and check their
        digests."""
        folder = Path(folder)
        if not (folder / DESCRIPTION).is_file():
            raise FileNotFoundError(
                f"There is no prepared corpus in {folder}: `python -m spacy elmo prepare` creates one"
            )
        try:
            return cls._read(folder, verify)
        except OSError:
            raise
        except Exception as error:  # the parsers raise many kinds for a damaged file
            raise ValueError(
                f"{folder} is damaged, or is not a corpus of this version ({error}). Delete it and prepare it again"
            ) from error

    @classmethod
    def _read(cls, folder: Path, verify: bool) -> Corpus:
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf8"))
        if not isinstance(description, dict) or description.get("format") != FORMAT:
            raise ValueError(
                f"corpus.json must have the format {FORMAT!r}, but is {description!r:.100}"
            )
        if verify:
            stored = description.pop("digests")
            for name, digest in digests(description, folder).items():
                if stored[name] != digest:
                    raise ValueError(f"{name} has changed since it was written")
        train, dev = (
            Sentences(np.load(folder / files.ids, mmap_mode="r"), np.load(folder / files.offsets))
            for files in FILES.values()
        )
        settings, spelling = Prepare(**description["prepare"]), description["spelling"]
        return cls(
            types=(folder / TYPES).read_bytes().decode("utf8", "surrogatepass").split("\n"),
            counts=np.load(folder / COUNTS),
            train=train,
            dev=dev,
            lang=settings.lang,
            tokenizer=settings.description,
            spelling=Spelling(spelling["form"], tuple(map(tuple, spelling["replace"]))),
        )

    def vocabulary(self, size: int) -> list[str]:
        """Return the words of a softmax with `size` classes. If the training part has fewer distinct words,
        the softmax has fewer classes."""
        in_training = 3 + int((self.counts[3:] > 0).sum())
        return self.types[: min(size, in_training)]


def digests(description: dict[str, Any], folder: Path) -> dict[str, str]:
    """Return the digests of a description without its entry `digests`, and of the other files of a corpus."""
    files = {name: file_digest(folder / name) for name in DATA_FILES}
    return {DESCRIPTION: json_digest(description), **files}


class Epoch:
    """The batches of one pass over the corpus. The sentences of a batch have similar lengths.

    The seed and the index of the epoch determine the batches. The shuffled sentences are divided into pools of about
    a hundred batches, and each pool is sorted by length and divided. Finally the batches are shuffled. Each batch can
    be computed from its index, so a run can be resumed at any batch.
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
        """Return the corpus indices of the sentences in the batch with the index `number`."""
        batch = self._order[number]
        return self._rows[self._borders[batch] : self._borders[batch + 1]]


@dataclass
class Batch:
    """A batch of sentences, as the distinct words and an index of a distinct word for each word."""

    types: np.ndarray
    """Index of each distinct word in the list of the corpus, `Corpus.types`, (distinct words,)."""
    token_ids: Tensor
    """Input of the token encoder for each distinct word, such as its byte ids, (distinct words, ...)."""
    classes: np.ndarray
    """Softmax class of each distinct word, then of `<S>` and `</S>`, (distinct words + 2,)."""
    type_of_word: np.ndarray
    """Index of each word of the batch among the distinct words, (words,)."""
    lengths: np.ndarray
    """Number of words of each sentence, (sentences,)."""


class Batcher:
    """Converter of sentences (word ids) to batches with the inputs of a biLM and the classes of its softmax.

    Args:
        types: the distinct words of the corpus; the id of a word is its index in this list.
        vocabulary: the word of each softmax class, including `<S>`, `</S>` and `<UNK>`. A word that is not in
            this list has the class `<UNK>`, but its input is still the word itself.
    """

    def __init__(self, bilm: BiLM, types: Sequence[str], vocabulary: Sequence[str]) -> None:
        self._token_ids = bilm.token_ids(types)
        rows = {word: row for row, word in enumerate(vocabulary)}
        self.unk = rows[UNK]
        """Softmax class of `<UNK>`."""
        self._classes = softmax_classes(types, rows, bilm.config.spelling)

    def __call__(self, ids: np.ndarray, lengths: np.ndarray) -> Batch:
        """Convert sentences to a batch: `ids` (words,) of one sentence after the other, `lengths` (sentences,)."""
        # The same as `np.unique` with `return_inverse`, which would sort the words.
        is_present = np.zeros(len(self._token_ids), dtype=bool)
        is_present[ids] = True
        types = np.flatnonzero(is_present)
        index_of = np.empty(len(is_present), dtype=np.int64)
        index_of[types] = np.arange(len(types))
        classes = np.append(self._classes[types], self._classes[-2:])
        token_ids = self._token_ids[torch.from_numpy(types)]
        return Batch(types, token_ids, classes, index_of[ids], lengths)

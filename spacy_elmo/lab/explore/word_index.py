"""Occurrences of the words of a corpus, read from the Parquet files of `embed`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spacy.tokens import Token
from thinc.api import to_numpy

from ...text.sentences import SPACE, starts_of_kinds, word_kinds
from ..contexts import Occurrence, Occurrences, occurrence_in, occurrence_of
from ..embed import METADATA
from ..normalize import normalize

MAX_OCCURRENCES = 300
"""Largest number of occurrences of one word whose vectors are kept."""


class SimilarSpelling(NamedTuple):
    """A word of the corpus with a similar spelling to a given token.

    The word and the token have similar vectors in layer 0, which depends only on the characters of a word.
    """

    word: str
    occurrences: int
    """Number of occurrences of the word in the corpus."""
    cosine: float


def is_embedded(corpus: str | Path) -> bool:
    """Return True if a corpus is a folder with Parquet files, which `embed` has written."""
    return any(Path(corpus).glob("*.parquet"))


class WordIndex:
    """Occurrences of each word of a corpus, with their sentences and vectors. Case is ignored.

    If a word occurs more than 300 times, only the vectors of 300 occurrences are kept, which are spread evenly
    over the corpus. Memory holds the tokens, and these vectors as float16.

    Args:
        folder: folder with Parquet files that `embed` has written, with all layers of each token.
    """

    def __init__(self, folder: str | Path) -> None:
        files = sorted(Path(folder).glob("*.parquet"))
        schema = pq.read_schema(files[0])
        if set(schema.names) != {"doc", "index", "text", "space", "layers"}:
            raise ValueError(
                f"{files[0]} has the columns {', '.join(schema.names)}. Write all layers of each token with"
                " `spacy elmo embed`"
            )
        self.pipeline: dict[str, Any] = json.loads(schema.metadata[METADATA])["pipeline"]
        """Settings that the vectors depend on; see `vector_settings`."""
        columns = ["doc", "index", "text", "space"]
        parts = [pq.read_table(file, columns=columns) for file in files]
        self._tokens = pa.concat_tables(parts).combine_chunks()
        spellings = self._tokens["text"].chunk(0).dictionary_encode()
        texts, number = spellings.dictionary.to_pylist(), spellings.indices.to_numpy()
        kinds = word_kinds(texts)[number]
        is_word = kinds & SPACE == 0
        if not is_word.any():
            raise ValueError(f"The corpus in {folder} contains no words")
        self.tokens = int(is_word.sum())
        """Number of tokens of the corpus, without whitespace."""
        docs = np.append(np.flatnonzero(self._tokens["index"].to_numpy() == 0), len(kinds))
        starts = np.flatnonzero(starts_of_kinds(kinds, np.diff(docs).tolist()))
        self._sentence_starts = np.append(starts, len(kinds))
        self.sentences = int(np.logical_or.reduceat(is_word, starts).sum())
        """Number of sentences of the corpus."""
        words = dict.fromkeys(text.casefold() for text in texts if not text.isspace())
        self._rows = {word: row for row, word in enumerate(words)}
        row_of = np.array([self._rows.get(text.casefold(), -1) for text in texts])
        rows = row_of[number[is_word]]
        self._counts = np.bincount(rows)
        self._kept = np.flatnonzero(is_word)[_evenly_spread(rows, self._counts)]
        self._ends = np.cumsum(np.minimum(self._counts, MAX_OCCURRENCES))
        self._read_vectors(files, is_word)

    def _read_vectors(self, files: list[Path], is_word: np.ndarray) -> None:
        """Read the vectors of the tokens `_kept`, and the mean vector of all words."""
        kept = self._kept
        slots = np.full(len(is_word), -1)
        slots[kept] = np.arange(len(kept))
        # All occurrences of a spelling have the same vector in layer 0, so one of them represents the word.
        firsts = kept[np.append(0, self._ends[:-1])]
        total, start = np.zeros(()), 0
        for layers in _layers(files):
            if not start:
                _, n_layers, width = layers.shape
                self._vectors = np.empty((len(kept), n_layers - 1, width), dtype="float16")
                spellings = np.empty((len(firsts), width), dtype="float32")
            end = start + len(layers)
            total = total + layers[is_word[start:end]].sum(axis=0, dtype="float64")
            is_kept = slots[start:end] >= 0
            self._vectors[slots[start:end][is_kept]] = layers[is_kept, 1:]
            is_first = (start <= firsts) & (firsts < end)
            spellings[is_first] = layers[firsts[is_first] - start, 0]
            start = end
        self.center = (total / self.tokens).astype("float32")[:, None]
        """Mean vector of all words of the corpus in each layer, (layers, 1, width) float32."""
        self._spellings = normalize(spellings - self.center[0])

    def count(self, word: str) -> int:
        """Return the number of occurrences of a word in the corpus."""
        row = self._rows.get(word.casefold())
        return 0 if row is None else int(self._counts[row])

    def find(self, word: str) -> Occurrences | None:
        """Return the occurrences of a word, and their vectors in all layers above layer 0.

        Occurrences without a vector are left out. Return None if the word does not occur in the corpus.
        """
        row = self._rows.get(word.casefold())
        if row is None:
            return None
        end = self._ends[row]
        kept = slice(end - min(self._counts[row], MAX_OCCURRENCES), end)
        vectors = self._vectors[kept].astype("float32").transpose(1, 0, 2)
        items = [self._occurrence(place) for place in self._kept[kept].tolist()]
        views = [f"layer {layer + 1}" for layer in range(len(vectors))]
        return Occurrences(items, views, vectors, self.center[1:])

    def query(self, token: Token, corpus: Occurrences) -> Occurrences:
        """Convert a token of a Doc that has layers to an occurrence, to compare it with those in the corpus."""
        item = occurrence_of(token.doc[token.i : token.i + 1], "")
        vectors = to_numpy(token.doc._.elmo_layers)[1:, token.i : token.i + 1]
        return Occurrences([item], corpus.views, vectors, self.center[1:])

    def similar_spellings(self, token: Token, n: int) -> list[SimilarSpelling]:
        """Return the n words of the corpus that are nearest to a token in layer 0, without the token's own
        word."""
        cosines = self._spellings @ normalize(to_numpy(token._.elmo_layers)[0] - self.center[0, 0])
        words = list(self._rows)
        best = np.argsort(-cosines, kind="stable")[: n + 1].tolist()
        similar = (SimilarSpelling(words[i], int(self._counts[i]), float(cosines[i])) for i in best)
        return [one for one in similar if one.word != token.text.casefold()][:n]

    def _occurrence(self, place: int) -> Occurrence:
        """Return the occurrence at a token of the corpus."""
        sentence = np.searchsorted(self._sentence_starts, place, side="right")
        start, end = self._sentence_starts[sentence - 1 : sentence + 1].tolist()
        tokens = self._tokens.slice(start, end - start).to_pydict()
        pairs = list(zip(tokens["text"], tokens["space"], strict=True))
        return occurrence_in(pairs, place - start, place - start + 1, tokens["doc"][0])


def _evenly_spread(numbers: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Select up to `MAX_OCCURRENCES` occurrences of each word, and return their indices, word after word. `numbers` has
    the word of each occurrence, and `counts` how often each word occurs."""
    by_word = np.argsort(numbers, kind="stable")
    rank = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
    # An occurrence is kept if it increases this quotient. So `MAX_OCCURRENCES` of n occurrences, evenly spread, are.
    scale = np.maximum(np.repeat(counts, counts), MAX_OCCURRENCES)
    kept = (rank + 1) * MAX_OCCURRENCES // scale > rank * MAX_OCCURRENCES // scale
    return by_word[kept]


def _layers(files: list[Path]) -> Iterator[np.ndarray]:
    """Yield the layers of consecutive tokens, (tokens, layers, width)."""
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(1 << 12, columns=["layers"]):
            layers = batch.column("layers")
            shape = (len(layers), layers.type.list_size, layers.type.value_type.list_size)
            yield layers.flatten().flatten().to_numpy().reshape(shape)

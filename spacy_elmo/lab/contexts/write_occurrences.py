"""Computation of the word index of a corpus, and storage of the index on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from spacy.language import Language
from spacy.tokens import Doc

from ...pipeline.encode.encoder import layers_and_width
from ...pipeline.encode.spans import rule_spans
from ..corpora.documents import read_docs
from ..corpora.pipelines import elmo_and_later, find_elmo
from .index_files import written_index
from .occurrence_index import MAX_OCCURRENCES, OCCURRENCES, numpy_layers
from .occurrences import sentence_text


def write_occurrences(
    folder: str | Path,
    nlp: Language,
    text: str,
    *,
    about: Mapping[str, Any],
    tokenized: bool = False,
    max_occurrences: int = MAX_OCCURRENCES,
) -> Iterator[int]:
    """Write a word index (`OccurrenceIndex`) of a corpus to a folder.

    The corpus is read twice: first to count its words, then to compute their vectors. The vectors are written
    to disk as soon as they are computed. Memory holds the words and the positions of their occurrences.

    Args:
        text: file, folder or glob pattern of the corpus.
        about: metadata to store with the index, from `source_of`.
        tokenized: True if the texts are already tokenized, with spaces between words.
        max_occurrences: the index stores vectors for at most this many occurrences of a word.

    Yields:
        The number of tokens processed since the previous yield. The index is complete when the iteration
        ends.

    Raises:
        ValueError: the text has no words.
        OSError, ValueError: see `read_docs` and `find_elmo`.
    """
    later = elmo_and_later(nlp)
    layers, width = layers_and_width(find_elmo(nlp)[1].model)
    counts: Counter[str] = Counter()
    for batch in read_docs(nlp, text, disable=later, tokenized=tokenized):
        for _, doc in batch:
            counts.update(token.text.casefold() for token in doc if not token.is_space)
    if not counts:
        raise ValueError(f"The text {text!r} contains no words, so there is nothing to index")
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    settings = {"layers": layers, "width": width, "tokens": counts.total(), "about": dict(about)}
    with written_index(folder, OCCURRENCES, settings) as new:
        writer = _Writer(new, counts, layers, width, max_occurrences)
        for batch in read_docs(nlp, text, disable=later[1:], tokenized=tokenized):
            for name, doc in batch:
                writer.add(name, doc)
            yield sum(len(doc) for _, doc in batch)
        writer.close()


class _Writer:
    """Writer of the files of a word index."""

    def __init__(
        self, folder: Path, counts: Mapping[str, int], layers: int, width: int, limit: int
    ) -> None:
        self._folder = folder
        self._counts = np.fromiter(counts.values(), dtype=np.int64)
        self._numbers = {word: number for number, word in enumerate(counts)}
        self._limit = limit
        kept = np.minimum(self._counts, limit)
        self._first = np.cumsum(kept) - kept
        self._seen = np.zeros(len(kept), dtype=np.int64)
        rows = int(kept.sum())
        self._vectors = _new_array(folder / "vectors", "float16", (rows, layers - 1, width))
        self._spellings = _new_array(folder / "spellings", "float16", (len(kept), width))
        self._places = np.zeros((rows, 3), dtype=np.int32)
        self._sentences: list[tuple[str, str]] = []
        self._total = np.zeros((layers, 1, width))

    def add(self, name: str, doc: Doc) -> None:
        """Add the sentences of a Doc, and the vectors of its words."""
        doc_layers = numpy_layers(doc)
        self._total += doc_layers.sum(axis=1, keepdims=True, dtype="float64")
        for sentence in rule_spans([doc])[0]:
            text, offsets = sentence_text(sentence)
            for i, offset in offsets.items():
                number = self._numbers[doc[i].text.casefold()]
                row = self._next_row(number)
                if self._seen[number] == 1:
                    self._spellings[number] = doc_layers[0, i]
                if row is not None:
                    self._places[row] = (len(self._sentences), *offset)
                    self._vectors[row] = doc_layers[1:, i]
            if offsets:
                self._sentences.append((name, text))

    def _next_row(self, number: int) -> int | None:
        """Count an occurrence of a word. Return the row in which to store the vector of this occurrence, or None if
        the vector is not stored.

        Args:
            number: index of the word in the list of words.
        """
        before = self._seen[number]
        self._seen[number] = before + 1
        # An occurrence gets a vector if it increases this quotient. So `limit` of n occurrences, evenly spread, do.
        kept = max(self._counts[number], self._limit)
        row, after = before * self._limit // kept, (before + 1) * self._limit // kept
        return int(self._first[number] + row) if row < after else None

    def close(self) -> None:
        """Write the words, the sentences, the positions and the mean vectors. The vectors are already on disk."""
        words = zip(self._numbers, self._counts.tolist(), self._first.tolist(), strict=True)
        srsly.write_jsonl(self._folder / "words.jsonl", words)
        srsly.write_jsonl(self._folder / "sentences.jsonl", self._sentences)
        centre = (self._total / self._counts.sum()).astype("float32")
        for name, array in (("places", self._places), ("centre", centre)):
            with (self._folder / name).open("wb") as file:
                np.save(file, array)
        self._vectors.flush()
        self._spellings.flush()


def _new_array(path: Path, dtype: str, shape: tuple[int, ...]) -> np.memmap:
    return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)

"""The search index: Docs and Spans by the cosines of their vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from .exact import ExactNeighbors
from .index_files import (
    SENTENCES,
    IndexEntry,
    open_index,
    read_entries,
    write_entries,
    written_index,
)
from .normalize import normalize
from .vector import Tokens, as_span, vector_of

SearchMethod: TypeAlias = Literal["exact", "hnsw"]

_VECTORS, _SPANS = SENTENCES.files


class Hit(NamedTuple):
    """A Span that a search has found."""

    doc_id: str
    start: int
    """Index of its first token in the Doc."""
    end: int
    """Index of the token after its last one."""
    text: str
    cosine: float
    """Cosine of its vector with that of the query."""


class Neighbors(Protocol):
    """Vectors of length 1 with a search for the nearest ones: the interface of the methods."""

    @property
    def width(self) -> int:
        """Number of dimensions of the vectors."""

    def __len__(self) -> int: ...

    def add(self, vectors: np.ndarray) -> None:
        """Add (n, width) vectors, which get the next n numbers."""

    def search(self, vector: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers and the cosines of the k vectors nearest to a (width,) vector, nearest first."""

    def to_disk(self, path: Path) -> None:
        """Write a file for the class method `from_disk`."""


class SearchIndex:
    """Index of Docs and Spans, searched by the cosine of their ELMo vectors with that of another Doc, Span or Token.

    The vector is the mean over the non-whitespace tokens. Of the Docs, the index keeps only texts and vectors.

    Args:
        layer: layer of the vectors; None: the average of all layers, `_.elmo`.
        method: "exact" compares with every vector. "hnsw" searches a graph of near vectors in time that hardly grows
            with their number, may miss some, and needs the extra `search`.
        about: metadata to store with the index, in JSON types.

    Raises:
        ValueError: "hnsw" is not installed.
    """

    def __init__(
        self,
        *,
        layer: int | None = None,
        method: SearchMethod = "exact",
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.layer = layer
        self.method: SearchMethod = method
        self.about = dict(about or {})
        self._search_class = _search_class(method)
        self._neighbors: Neighbors | None = None
        self._entries: list[IndexEntry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, doc_id: str, tokens: Iterable[Tokens]) -> None:
        """Add parts of a Doc, such as `doc.sents`, or the whole as `[doc]`. Parts without words are left out.

        Args:
            doc_id: name of the Doc in hits.

        Raises:
            ValueError: the Doc has no vectors, or vectors of another width than the index.
        """
        entries, vectors = [], []
        for span in map(as_span, tokens):
            vector = vector_of(span, self.layer)
            if vector is not None:
                entries.append(IndexEntry(doc_id, span.start, span.end, span.text.strip()))
                vectors.append(vector)
        if not entries:
            return
        rows = normalize(np.stack(vectors))
        if self._neighbors is None:
            self._neighbors = self._search_class(rows.shape[1])
        _check_width(self._neighbors, rows.shape[1])
        self._neighbors.add(rows)
        self._entries += entries

    def search(self, query: Tokens, k: int = 10) -> list[Hit]:
        """Return the k nearest entries, or all if there are fewer, nearest first.

        Raises:
            ValueError: `k` is less than 1; the query has no words, no vectors, or vectors of another width.
        """
        if k < 1:
            raise ValueError(f"k = {k}: the number of hits must be at least 1")
        vector = vector_of(as_span(query), self.layer)
        if vector is None:
            raise ValueError(f"The query {query.text!r} has no words")
        if self._neighbors is None:
            return []
        _check_width(self._neighbors, len(vector))
        numbers, cosines = self._neighbors.search(normalize(vector), k)
        return [
            Hit(**self._entries[number]._asdict(), cosine=cosine)
            for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True)
        ]

    def to_disk(self, folder: str | Path) -> None:
        """Write the index to a folder, which is created; an index in it is overwritten.

        Raises:
            OSError: it cannot be written.
            ValueError: the index is empty.
        """
        if self._neighbors is None:
            raise ValueError("The index is empty; there is nothing to save")
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        settings: dict[str, Any] = {"layer": self.layer, "method": self.method}
        settings |= {"width": self._neighbors.width, "about": self.about}
        with written_index(folder, SENTENCES, settings) as new:
            self._neighbors.to_disk(new / _VECTORS)
            write_entries(new / _SPANS, self._entries)

    @classmethod
    def from_disk(cls, folder: str | Path) -> SearchIndex:
        """Load an index from a folder that `to_disk` has written, after comparing its files with their digests.

        Raises:
            OSError: the folder does not exist, or a file is missing.
            ValueError: it is not an index, or damaged; see the constructor.
        """
        folder = Path(folder)
        settings, files = open_index(folder, SENTENCES)
        try:
            index = cls(layer=settings["layer"], method=settings["method"], about=settings["about"])
        except ValueError as error:
            raise ValueError(f"{folder}: {error}") from error
        neighbors = index._neighbors = index._search_class.from_disk(files[_VECTORS])
        index._entries = read_entries(files[_SPANS])
        if len(neighbors) != len(index):
            raise ValueError(
                f"{folder} has {len(neighbors)} vectors and {len(index)} spans: it is damaged, make it again"
            )
        if neighbors.width != settings["width"]:
            raise ValueError(
                f"{folder} has vectors of {neighbors.width} numbers, and settings for {settings['width']}: it is"
                " damaged, make it again"
            )
        return index


def _check_width(neighbors: Neighbors, width: int) -> None:
    if width != neighbors.width:
        raise ValueError(
            f"The index has vectors of {neighbors.width} numbers, and the Doc of {width}: use the biLM of the index"
        )


def _search_class(method: SearchMethod) -> Any:
    if method == "exact":
        return ExactNeighbors
    if method != "hnsw":
        raise ValueError(f"method = {method!r}: choose exact or hnsw")
    try:
        from .hnsw import HnswNeighbors
    except ImportError as error:
        raise ValueError(f"hnsw needs `pip install spacy-elmo[search]` ({error})") from error
    return HnswNeighbors

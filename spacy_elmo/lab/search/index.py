"""Search index that finds similar Docs and Spans by the cosine of their vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..normalize import normalize
from .exact import ExactNeighbors
from .index_files import (
    SENTENCES,
    IndexEntry,
    open_index,
    read_entries,
    write_entries,
    written_index,
)
from .vector import Tokens, as_span, vector_of

if TYPE_CHECKING:
    from .hnsw import HnswNeighbors

Neighbors: TypeAlias = "ExactNeighbors | HnswNeighbors"
SearchMethod: TypeAlias = Literal["exact", "hnsw"]

_VECTORS, _SPANS = SENTENCES.files


class Hit(NamedTuple):
    """A Span that a search has found, and the cosine that measures how similar the Span and the query are."""

    doc_id: str
    start: int
    """Index of the first token of the Span in the Doc."""
    end: int
    """Index of the last token of the Span in the Doc, plus 1."""
    text: str
    cosine: float
    """Cosine between the vector of the Span and the vector of the query."""


class SearchIndex:
    """Index of Docs and Spans. A search finds the entries that are most similar to a Doc, Span or Token.

    The vector of a Doc or Span is the mean of the ELMo vectors of its tokens, without whitespace tokens. The
    similarity is the cosine of two vectors. The index stores vectors, texts and token positions, but no Docs.

    Args:
        layer: index of the biLM layer to compare. None: the average of all layers, as in `_.elmo`.
        method: "exact" compares the query with every vector. "hnsw" searches a graph of vectors: the search
            time hardly grows with the number of vectors, but some near vectors can be missed. "hnsw" needs
            `pip install "spacy-elmo[search]"`.
        about: any metadata to store with the index, in JSON types.

    Raises:
        ValueError: `method` is unknown, or the library for "hnsw" is not installed.
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
        """Add Spans of a Doc, or the whole Doc. A Span with only whitespace tokens is left out.

        Args:
            doc_id: any name for the Doc. A search returns this name in each hit from the Doc.
            tokens: the Spans, such as `doc.sents`, or `[doc]` for the whole Doc.

        Raises:
            TypeError: `doc_id` is not a string.
            ValueError: the Doc has no vectors, or the vectors of the Doc and of the index differ in width.
        """
        if not isinstance(doc_id, str):
            raise TypeError(f"doc_id = {doc_id!r:.100}: the name of a Doc must be a string")
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
        """Return the k Spans in the index that are most similar to a query, most similar first. If the index
        has fewer Spans, return all.

        Raises:
            ValueError: `k` is less than 1; the query has no words; the query has no vectors; or the vectors
                of the query and of the index differ in width.
        """
        if k < 1:
            raise ValueError(f"k = {k}, but the number of hits must be at least 1")
        vector = vector_of(as_span(query), self.layer)
        if vector is None:
            raise ValueError(f"The query {query.text!r} contains no words")
        if self._neighbors is None:
            return []
        _check_width(self._neighbors, len(vector))
        numbers, cosines = self._neighbors.search(normalize(vector), k)
        return [
            Hit(**self._entries[number]._asdict(), cosine=cosine)
            for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True)
        ]

    def to_disk(self, folder: str | Path) -> None:
        """Write the index to a new or existing folder. An earlier index in the folder is replaced.

        Raises:
            OSError: the folder cannot be written.
            ValueError: the index is empty.
        """
        if self._neighbors is None:
            raise ValueError("The index is empty and cannot be saved. Add Docs or Spans first")
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        settings: dict[str, Any] = {"layer": self.layer, "method": self.method}
        settings |= {"width": self._neighbors.width, "about": self.about}
        with written_index(folder, SENTENCES, settings) as new:
            self._neighbors.to_disk(new / _VECTORS)
            write_entries(new / _SPANS, self._entries)

    @classmethod
    def from_disk(cls, folder: str | Path) -> SearchIndex:
        """Load an index from a folder that `to_disk` has written. Digests detect damaged files.

        Raises:
            OSError: the folder does not exist, or a file is missing.
            ValueError: the folder is not an index; the index is damaged; or the library for "hnsw" is not
                installed.
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
                f"{folder} has {len(neighbors)} vectors, but {len(index)} spans. The index is damaged. Make it again"
            )
        if neighbors.width != settings["width"]:
            raise ValueError(
                f"{folder} has vectors of {neighbors.width} numbers, but its settings say {settings['width']}. The"
                " index is damaged. Make it again"
            )
        return index


def _check_width(neighbors: Neighbors, width: int) -> None:
    if width != neighbors.width:
        raise ValueError(
            f"The vectors of the index have {neighbors.width} numbers, but those of the Doc have {width}. Use the same"
            " biLM for both"
        )


def _search_class(method: SearchMethod) -> Any:
    if method == "exact":
        return ExactNeighbors
    if method != "hnsw":
        raise ValueError(f"method = {method!r} (`--method`) must be exact or hnsw")
    try:
        from .hnsw import HnswNeighbors
    except ImportError as error:
        raise ValueError(
            f'The method hnsw needs another library: pip install "spacy-elmo[search]" ({error})'
        ) from error
    return HnswNeighbors

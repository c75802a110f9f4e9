"""The search index: Docs and Spans by the cosines of their vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import srsly

from ..files import all_or_nothing
from ..text.documents import json_lines
from .exact import ExactNeighbours
from .unit import unit
from .vector import Tokens, as_span, vector_of

SearchMethod: TypeAlias = Literal["exact", "hnsw"]

FORMAT = "spacy-elmo search 1"
_SETTINGS = "index.json"
_SPANS = "spans.jsonl"
_VECTORS = "vectors"
_TYPES: dict[str, Any] = {"layer": int | None, "method": str, "width": int, "about": dict}


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


class IndexEntry(NamedTuple):
    """A Span in the index."""

    doc_id: str
    start: int
    end: int
    text: str


class Neighbours(Protocol):
    """Vectors of length 1 with a search for the nearest ones: the interface of the methods."""

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
        self._neighbours_class = _neighbours_class(method)
        self._width: int | None = None
        self._neighbours: Neighbours | None = None
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
        rows = unit(np.stack(vectors))
        if self._neighbours is None:
            self._width = rows.shape[1]
            self._neighbours = self._neighbours_class(self._width)
        self._check_width(rows.shape[1])
        self._neighbours.add(rows)
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
        if self._neighbours is None:
            return []
        self._check_width(len(vector))
        numbers, cosines = self._neighbours.search(unit(vector), k)
        return [
            Hit(**self._entries[number]._asdict(), cosine=cosine)
            for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True)
        ]

    def _check_width(self, width: int) -> None:
        if width != self._width:
            raise ValueError(
                f"The index has vectors of {self._width} numbers, and the Doc of {width}: use the biLM of the index"
            )

    def to_disk(self, folder: str | Path) -> None:
        """Write the index to a folder, which is created; an index in it is overwritten.

        Raises:
            OSError: it cannot be written.
            ValueError: the index is empty.
        """
        if self._neighbours is None:
            raise ValueError("The index is empty; there is nothing to save")
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        settings: dict[str, Any] = {"format": FORMAT, "layer": self.layer, "method": self.method}
        settings |= {"width": self._width, "about": self.about}
        # The settings are the last file to appear: a folder without them is not an index.
        with all_or_nothing(folder, (_VECTORS, _SPANS, _SETTINGS), force=True) as new:
            self._neighbours.to_disk(new / _VECTORS)
            srsly.write_jsonl(new / _SPANS, self._entries)
            srsly.write_json(new / _SETTINGS, settings)

    @classmethod
    def from_disk(cls, folder: str | Path) -> SearchIndex:
        """Load an index from a folder that `to_disk` has written.

        Raises:
            OSError: the folder does not exist, or a file is missing.
            ValueError: it is not an index, or damaged; see the constructor.
        """
        folder = Path(folder)
        settings = _load_settings(folder / _SETTINGS)
        index = cls(layer=settings["layer"], method=settings["method"], about=settings["about"])
        index._width = settings["width"]
        index._neighbours = index._neighbours_class.from_disk(folder / _VECTORS)
        index._entries = list(json_lines(folder / _SPANS, _entry, "strict"))
        if len(index._neighbours) != len(index):
            raise ValueError(
                f"{folder} has {len(index._neighbours)} vectors and {len(index)} spans: it is damaged, make it"
                " again"
            )
        return index


def _neighbours_class(method: SearchMethod) -> Any:
    if method == "exact":
        return ExactNeighbours
    if method != "hnsw":
        raise ValueError(f"method = {method!r}: choose exact or hnsw")
    try:
        from .hnsw import HnswNeighbours
    except ImportError as error:
        raise ValueError(f"hnsw needs `pip install spacy-elmo[search]` ({error})") from error
    return HnswNeighbours


def _load_settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"No index in {path.parent}: `spacy elmo search index` makes one"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{path} is not valid JSON: the index is damaged, make it again ({error})"
        ) from error
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        raise ValueError(
            f"{path}: expected the format {FORMAT!r}; it is not an index of this version"
        )
    for name, expected in _TYPES.items():
        if name not in settings or not isinstance(settings[name], expected):
            value = json.dumps(settings[name]) if name in settings else "missing"
            raise ValueError(f"{path}: {name} is {value:.100}: the index is damaged, make it again")
    return settings


def _entry(row: object) -> IndexEntry:
    if isinstance(row, list) and [type(part) for part in row] == [str, int, int, str]:
        return IndexEntry(*row)
    raise ValueError(
        "expected [name of a Doc, first token, token after the last, text], but got"
        f" {json.dumps(row):.100}: the index is damaged, make it again"
    )

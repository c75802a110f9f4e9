"""An index of Docs and Spans by their vectors."""

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

Method: TypeAlias = Literal["exact", "hnsw"]

FORMAT = "spacy-elmo search 1"
_SETTINGS = "index.json"
_SPANS = "spans.jsonl"
_VECTORS = "vectors"
_TYPES: dict[str, Any] = {"layer": int | None, "method": str, "width": int, "about": dict}


class Hit(NamedTuple):
    """What was found."""

    doc_id: str
    start: int
    end: int
    """Its first token in the Doc, and that after the last."""
    text: str
    cosine: float
    """Of the angle between its vector and that of the query."""


class Entry(NamedTuple):
    """A Span in the index."""

    doc_id: str
    start: int
    end: int
    text: str


class Neighbours(Protocol):
    """Vectors of length 1, among which the nearest are found."""

    def __len__(self) -> int: ...

    def add(self, vectors: np.ndarray) -> None:
        """Take in (n, width) vectors, which get the next n numbers."""

    def search(self, vector: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers and the cosines of the k that are nearest to a (width,) vector, nearest first."""

    def to_disk(self, path: Path) -> None:
        """Write a file, for `from_disk` of the class."""


class SearchIndex:
    """Docs and Spans, found by the cosine of their ELMo vectors with that of another Doc, Span or Token.

    The vector is the mean over the tokens that are no whitespace. In an index nothing is left of the Docs but texts.

    Args:
        layer: of which the vectors are; None: the average of all layers, `_.elmo`.
        method: "exact" compares with every vector. "hnsw" searches a graph of near vectors in time that hardly grows
            with their number, may miss some, and needs the extra `search`.
        about: whatever is to be found again with the index, in JSON types.

    Raises:
        ValueError: "hnsw" is not installed.
    """

    def __init__(
        self,
        *,
        layer: int | None = None,
        method: Method = "exact",
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.layer = layer
        self.method: Method = method
        self.about = dict(about or {})
        self._kind = _neighbours(method)
        self._width: int | None = None
        self._neighbours: Neighbours | None = None
        self._entries: list[Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, doc_id: str, tokens: Iterable[Tokens]) -> None:
        """Take in parts of a Doc, such as `doc.sents`; or all of it, as `[doc]`. What has no words is left out.

        Args:
            doc_id: under which hits name the Doc.

        Raises:
            ValueError: the Doc has no vectors, or of another width than those in the index.
        """
        entries, vectors = [], []
        for span in map(as_span, tokens):
            vector = vector_of(span, self.layer)
            if vector is not None:
                entries.append(Entry(doc_id, span.start, span.end, span.text.strip()))
                vectors.append(vector)
        if not entries:
            return
        rows = unit(np.stack(vectors))
        if self._neighbours is None:
            self._width = rows.shape[1]
            self._neighbours = self._kind(self._width)
        self._check_width(rows.shape[1])
        self._neighbours.add(rows)
        self._entries += entries

    def search(self, query: Tokens, k: int = 10) -> list[Hit]:
        """The k nearest, or all if there are fewer; nearest first.

        Raises:
            ValueError: `k` is less than 1; the query has no words, no vectors, or of another width.
        """
        if k < 1:
            raise ValueError(f"k = {k}: at least 1 hit must be asked for")
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
        """Write to a folder, which is made; an index that is there is overwritten.

        Raises:
            OSError: it cannot be written.
            ValueError: there is nothing in the index.
        """
        if self._neighbours is None:
            raise ValueError("The index is empty; nothing to save")
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        settings: dict[str, Any] = {"format": FORMAT, "layer": self.layer, "method": self.method}
        settings |= {"width": self._width, "about": self.about}
        # The settings are the last file to appear: without them, there is no index.
        with all_or_nothing(folder, (_VECTORS, _SPANS, _SETTINGS), force=True) as new:
            self._neighbours.to_disk(new / _VECTORS)
            srsly.write_jsonl(new / _SPANS, self._entries)
            srsly.write_json(new / _SETTINGS, settings)

    @classmethod
    def from_disk(cls, folder: str | Path) -> SearchIndex:
        """Read what `to_disk` wrote.

        Raises:
            OSError: there is no such folder, or a file is missing.
            ValueError: it is none of ours, or damaged; or as of the constructor.
        """
        folder = Path(folder)
        settings = _read_settings(folder / _SETTINGS)
        index = cls(layer=settings["layer"], method=settings["method"], about=settings["about"])
        index._width = settings["width"]
        index._neighbours = index._kind.from_disk(folder / _VECTORS)
        index._entries = list(json_lines(folder / _SPANS, _entry, "strict"))
        if len(index._neighbours) != len(index):
            raise ValueError(
                f"{folder}: {len(index._neighbours)} vectors and {len(index)} spans; it is damaged, make it again"
            )
        return index


def _neighbours(method: Method) -> Any:
    """The class."""
    if method == "exact":
        return ExactNeighbours
    if method != "hnsw":
        raise ValueError(f"method = {method!r}: choose exact or hnsw")
    try:
        from .hnsw import HnswNeighbours
    except ImportError as error:
        raise ValueError(f"hnsw needs `pip install spacy-elmo[search]` ({error})") from error
    return HnswNeighbours


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"No index in {path.parent}: `spacy elmo search index` makes one"
        ) from error
    except ValueError as error:
        raise ValueError(f"{path}: no JSON, or damaged ({error})") from error
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        raise ValueError(f"{path}: expected the format {FORMAT!r}")
    for name, expected in _TYPES.items():
        if name not in settings or not isinstance(settings[name], expected):
            found = json.dumps(settings[name]) if name in settings else "nothing"
            raise ValueError(f"{path}: {found:.100} as its {name}; it is damaged, make it again")
    return settings


def _entry(row: object) -> Entry:
    if isinstance(row, list) and [type(part) for part in row] == [str, int, int, str]:
        return Entry(*row)
    raise ValueError(
        "expected [name of a Doc, first token, token after the last, text], found"
        f" {json.dumps(row):.100}; it is damaged, make the index again"
    )

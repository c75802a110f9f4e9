"""Random access to the vectors on disk, item by item."""

from __future__ import annotations

import bisect
import functools
import json
import operator
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .shard_file import ShardFile

FORMAT = "spacy-elmo vectors 1"
INDEX = "index.json"
_OPEN_SHARDS = 16


def open_vectors(folder: str | Path) -> Vectors:
    """Open the vectors that `python -m spacy elmo embed` has written to a folder.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: it is not such a folder, or incomplete.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"No folder {folder}")
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf8"))
    except FileNotFoundError as error:
        raise ValueError(
            f"{folder} has no {INDEX}: it contains no vectors, or they are incomplete. If `embed` was interrupted, run"
            " it again with --resume"
        ) from error
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise ValueError(f"{folder / INDEX}: expected the format {FORMAT!r}")
    return Vectors(folder, index)


class Vectors:
    """Sequence of the items' vectors: arrays (layers, n_tokens, width).

    With `layers` "average" or "top" an array is (n_tokens, width); if pooled, the axis of tokens is missing. The arrays
    are mapped from the files and read-only: memory holds the items that are used, whatever the size of the corpus.
    """

    def __init__(self, folder: Path, index: Mapping[str, Any]) -> None:
        self.folder = folder
        self.settings: dict[str, Any] = dict(index["settings"])
        """Settings of the `embed` run, and the fingerprint of the pipeline."""
        self.files: list[dict[str, Any]] = index["shards"]
        """Entry of each shard: its `file`, the `source` of its text, the number of its `first` item, and the numbers of
        its `items` and `rows`."""
        self._ends = [shard["first"] + shard["items"] for shard in self.files]
        self._open = functools.lru_cache(_OPEN_SHARDS)(self.shard)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, number: int) -> np.ndarray:
        shard, item = self._find(number)
        return shard.vectors(item)

    def __iter__(self) -> Iterator[np.ndarray]:
        return map(self.__getitem__, range(len(self)))

    def tokens(self, number: int) -> list[str]:
        """Return the tokens of an item, one for each of its rows."""
        shard, item = self._find(number)
        return shard.tokens(item)

    def shard(self, number: int) -> ShardFile:
        """Open a shard, to read many items at once."""
        return ShardFile(self.folder / self.files[number]["file"])

    def _find(self, number: int) -> tuple[ShardFile, int]:
        """Return the shard of an item, and the item's number in it."""
        index = operator.index(number)
        index += len(self) if index < 0 else 0
        if not 0 <= index < len(self):
            raise IndexError(f"There is no item {number}; the number of items is {len(self)}")
        shard = bisect.bisect_right(self._ends, index)
        return self._open(shard), index - self.files[shard]["first"]

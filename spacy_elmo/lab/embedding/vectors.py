"""Random access to the vectors of a corpus on disk."""

from __future__ import annotations

import bisect
import functools
import operator
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...digest import check_digests
from ...text.json_object import read_json_object
from .shard_file import ShardFile, shard_name

FORMAT = "spacy-elmo vectors 1"
INDEX = "index.json"
_OPEN_SHARDS = 16
_MOST_ROWS = 1 << 48
"""Limit for the number of items (texts) and for the number of tokens in a shard file. No disk holds so many
vectors, and Python supports lengths below 2**63."""
_ENTRY = {"file": str, "source": str, "first": int, "items": int, "rows": int}


def open_vectors(folder: str | Path, *, verify: bool = True) -> Vectors:
    """Open the vectors that `embed` or `python -m spacy elmo embed` has written to a folder.

    Args:
        verify: compare each file with its checksum before the first use of the file. The comparison reads the
            whole file.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: the folder contains no vectors, or the vectors are incomplete or damaged.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder {folder} does not exist")
    try:
        index = read_json_object(folder / INDEX)
    except FileNotFoundError as error:
        raise ValueError(
            f"{folder} has no {INDEX}, so it contains no vectors, or they are incomplete. If `embed` was interrupted,"
            " run it again with resume (`--resume`)"
        ) from error
    if index.get("format") != FORMAT:
        raise ValueError(
            f"{folder / INDEX}: expected the format {FORMAT!r}, but got {index.get('format')!r:.100}"
        )
    _check_index(folder / INDEX, index)
    return Vectors(folder, index, verify=verify)


class Vectors:
    """Sequence with one array for each item (text) of a corpus: the item's vectors, (layers, tokens, width).

    If the vectors were written with `layers` "average" or "top", the arrays have no axis for layers. With
    pooling, the arrays have no axis for tokens. The arrays are read-only. They are mapped from the files, so
    only the items that you use are in memory.
    """

    def __init__(self, folder: Path, index: Mapping[str, Any], *, verify: bool = True) -> None:
        self.folder = folder
        self._verify = verify
        self._verified: set[int] = set()
        self.settings: dict[str, Any] = dict(index["settings"])
        """Settings of the vectors: path of the text, options of `embed`, and fingerprint of the pipeline."""
        self.files: list[dict[str, Any]] = index["shards"]
        """One dict for each shard (group of consecutive items). The keys are `file` (name of the shard file),
        `source` (path of the text), `first` (index of the first item in the corpus), `items` (number of
        items) and `rows` (number of tokens)."""
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
        """Return the tokens of an item (text).

        Args:
            number: index of the item in the corpus.
        """
        shard, item = self._find(number)
        return shard.tokens(item)

    def shard(self, number: int) -> ShardFile:
        """Open the shard file with the index `number`. Use this method to read many items of one file.

        Raises:
            OSError: the file does not exist.
            ValueError: the file is damaged, or does not belong to the index file.
        """
        entry = self.files[number]
        shard = ShardFile(self.folder / entry["file"])
        if any(shard.metadata[name] != entry[name] for name in ("first", "items", "rows")):
            raise ValueError(
                f"{shard.path} does not belong to {self.folder / INDEX}. Run `embed` again"
            )
        if self._verify and number not in self._verified:
            shard.verify()
            self._verified.add(number)
        return shard

    def _find(self, number: int) -> tuple[ShardFile, int]:
        """Return the shard file that contains an item, and the index of the item in this file."""
        index = operator.index(number)
        index += len(self) if index < 0 else 0
        if not 0 <= index < len(self):
            raise IndexError(f"There is no item {number}: the vectors have {len(self)} items")
        shard = bisect.bisect_right(self._ends, index)
        return self._open(shard), index - self.files[shard]["first"]


def _check_index(path: Path, index: Mapping[str, Any]) -> None:
    """Check the digest of an index file and the entries for the shard files. Raise a ValueError if they are
    wrong."""
    try:
        check_digests(index, path)
    except ValueError as error:
        raise ValueError(f"{error}. Run `embed` again") from error
    shards = index.get("shards")
    if (
        not isinstance(shards, list)
        or not isinstance(index.get("settings"), dict)
        or index.keys() != {"format", "settings", "shards", "digests"}
    ):
        raise ValueError(
            f"{path} is damaged: expected settings and a list of shards. Run `embed` again"
        )
    first = 0
    for number, entry in enumerate(shards):
        if (
            not isinstance(entry, dict)
            or any(type(entry.get(name)) is not kind for name, kind in _ENTRY.items())
            or entry["file"] != shard_name(number)
            or entry["first"] != first
            or not all(0 <= entry[name] < _MOST_ROWS for name in ("items", "rows"))
        ):
            raise ValueError(
                f"{path} is damaged: {entry!r:.200} is not a valid entry for shard {number}. Run `embed` again"
            )
        first += entry["items"]

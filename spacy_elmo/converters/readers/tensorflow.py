"""Reader of TensorFlow's checkpoints in the format V2 ("tensor bundle"). The reader does not need TensorFlow.

`PREFIX.index` is a table (see `tensorflow_table`) of protocol buffers. The value of the empty key is a
`BundleHeaderProto`. Every other key is the name of a tensor. The value of this key is a `BundleEntryProto`
with the location of the tensor in one of the data files, `PREFIX.data-00000-of-00001`. The data files contain
only numbers, in C order. A text file `checkpoint` in the same folder contains the prefix of the newest
checkpoint.

Sources: TensorFlow's `core/protobuf/tensor_bundle.proto`, `core/util/tensor_bundle/tensor_bundle.cc`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from ...limits import MAX_AXES
from .crc32c import crc32c, masked
from .errors import one_error
from .protobuf import Message
from .tensorflow_table import is_table, read_table

INDEX = ".index"
_VERSION = 1
_MOST_SHARDS = 99_999
# By the number in `core/framework/types.proto`.
_BFLOAT16 = 14
_DTYPES = {1: "<f4", 3: "<i4", 9: "<i8", _BFLOAT16: "<u2", 19: "<f2"}
_OTHER_DTYPES = {2: "float64", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 10: "bool"}


@dataclass(frozen=True)
class Entry:
    """Entry of a checkpoint's index: the location, type and checksum of a tensor."""

    dtype: int
    """Code of the data type in TensorFlow's `types.proto`."""
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    """Number of bytes of the tensor. The bytes start at `offset` in the data file."""
    crc: int
    """Checksum of the bytes: CRC-32C, masked as in `crc32c.masked`."""
    sliced: bool
    """True if the tensor is stored in several slices (a partitioned variable)."""


class V1Error(ValueError):
    """Error for a checkpoint in TensorFlow's old format V1."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is a checkpoint in TensorFlow's old format V1. Restore it in TensorFlow and save it"
            " again, with tf.train.Saver(write_version=tf.train.SaverDef.V2)"
        )


def is_v1(path: Path) -> bool:
    """Return True if a file is a TensorFlow checkpoint in the old format V1: a table file of TensorFlow with
    a name that does not end in `.index`."""
    return path.suffix != INDEX and path.is_file() and is_table(path)


class Checkpoint:
    """TensorFlow checkpoint on disk. The constructor reads only the index, and `read` loads one tensor.

    Args:
        prefix: common path of the files, without `.index` and `.data-00000-of-00001`.

    Raises:
        OSError: the index is missing or cannot be read.
        ValueError: the index is damaged, or the checkpoint has another format.
    """

    def __init__(self, prefix: str | Path) -> None:
        self.prefix = Path(prefix)
        self.index = _beside(self.prefix, INDEX)
        if not self.index.exists() and is_v1(self.prefix):
            raise V1Error(self.prefix)
        table = read_table(self.index)
        with one_error(self.index, "a readable index of a checkpoint"):
            self._shards = _shards(table.pop(b"", None))
            self.entries = {_text(key): _entry(Message(value)) for key, value in table.items()}
            """{name of a tensor: entry of the index}."""
            _check_overlaps(self.entries)

    @property
    def files(self) -> list[Path]:
        """Paths of all files of the checkpoint."""
        return [self.index, *(self._shard(shard) for shard in range(self._shards))]

    def read(self, name: str) -> np.ndarray:
        """Read one tensor, and verify its checksum.

        Returns:
            A new array with the shape and type of the tensor. bfloat16 is converted to float32, because NumPy
            has no bfloat16.

        Raises:
            KeyError: the checkpoint has no tensor with this name.
            OSError: the data file is missing or cannot be read.
            ValueError: the tensor is truncated, damaged or stored in slices, or its type is not float32,
                float16, bfloat16, int32 or int64.
        """
        entry = self.entries[name]
        if entry.sliced:
            raise ValueError(
                f"{self.index}: {name} is stored in several slices (a partitioned variable), which is not supported"
            )
        if entry.dtype not in _DTYPES:
            kind = _OTHER_DTYPES.get(entry.dtype, f"number {entry.dtype}")
            raise ValueError(
                f"{self.index}: {name} has the type {kind}; supported are float32, float16, bfloat16, int32 and int64"
            )
        dtype = np.dtype(_DTYPES[entry.dtype])
        count = math.prod(entry.shape)
        if min(entry.shape, default=0) < 0 or count * dtype.itemsize != entry.size:
            raise ValueError(
                f"{self.index} is damaged: {name} has the shape {list(entry.shape)} and the type {dtype}, but"
                f" {entry.size} bytes"
            )
        if not 0 <= entry.shard < self._shards:
            raise ValueError(
                f"{self.index} is damaged: {name} is in data file {entry.shard}, but there are only {self._shards}"
            )
        path = self._shard(entry.shard)
        end, size = entry.offset + entry.size, path.stat().st_size
        if entry.offset < 0 or end > size:
            raise ValueError(
                f"{path} has {size} bytes, but {name} should be at bytes {entry.offset} to {end}. The file is truncated"
                " or belongs to another checkpoint"
            )
        array = np.fromfile(path, dtype, count, offset=entry.offset)
        if masked(crc32c(array)) != entry.crc:
            raise ValueError(
                f"{path}: {name} does not match its checksum. The file is damaged or belongs to another checkpoint"
            )
        if entry.dtype == _BFLOAT16:  # the upper half of a float32
            array = (array.astype("<u4") << 16).view("<f4")
        return array.reshape(entry.shape)

    def _shard(self, shard: int) -> Path:
        return _beside(self.prefix, f".data-{shard:05}-of-{self._shards:05}")


def newest(folder: Path) -> Path:
    """Return the path of the newest TensorFlow checkpoint in a folder, without the endings of its files.

    The file `checkpoint` names the newest checkpoint. Without this file, the folder must contain exactly one
    checkpoint.

    Raises:
        OSError: the folder cannot be read.
        ValueError: there is no checkpoint, or the newest of several checkpoints is not known. The message
            lists the checkpoints.
    """
    prefixes = sorted(
        path.with_name(path.name.removesuffix(INDEX)) for path in folder.glob(f"*{INDEX}")
    )
    named = _named(folder / "checkpoint")
    for prefix in prefixes:
        if prefix.name == named:
            return prefix
    if len(prefixes) == 1:
        return prefixes[0]
    if not prefixes:
        if v1 := next(filter(is_v1, sorted(folder.iterdir())), None):
            raise V1Error(v1)
        raise ValueError(
            f"{folder} contains no checkpoint, that is, no file *{INDEX} (and *.data-00000-of-00001)"
        )
    listing = "".join(f"\n  {prefix.name}{INDEX}" for prefix in prefixes)
    raise ValueError(
        f"{folder} contains {len(prefixes)} checkpoints, and no file `checkpoint` that names one of them. Give one of"
        f" these files instead of the folder:{listing}"
    )


def _named(path: Path) -> str | None:
    """Read the name of the newest checkpoint, without folders, from the file `checkpoint`. Return None if
    there is no name."""
    if not path.is_file():
        return None
    text = path.read_text("utf8", "replace")
    match = re.search(r'^model_checkpoint_path:\s*"(.+)"', text, re.MULTILINE)
    return re.split(r"[/\\]", match[1])[-1] if match else None


def _shards(header: bytes | None) -> int:
    """Check a `BundleHeaderProto`, and return the number of data files."""
    if header is None:
        raise ValueError("it is a table of TensorFlow without the header of a checkpoint")
    message = Message(header)
    shards, big_endian = message.number(1), message.number(2)
    oldest = max([Message(version).number(2) for version in message.parts(3)], default=0)
    if big_endian:
        raise ValueError("it was written on a big-endian machine, which is not supported")
    if oldest > _VERSION:
        raise ValueError(
            f"it needs a reader of version {oldest} or newer, but this reader has version {_VERSION}"
        )
    if not 1 <= shards <= _MOST_SHARDS:
        raise ValueError(f"it claims {shards} data files, expected 1 to {_MOST_SHARDS:,}")
    return shards


def _entry(message: Message) -> Entry:
    """Convert a `BundleEntryProto` to an `Entry`."""
    dims = [dim for shape in message.parts(2) for dim in Message(shape).parts(2)]
    if len(dims) > MAX_AXES:
        raise ValueError(f"a tensor has {len(dims):,} axes, the limit is {MAX_AXES}")
    return Entry(
        dtype=message.number(1),
        shape=tuple(Message(dim).number(1) for dim in dims),
        shard=message.number(3),
        offset=message.number(4),
        size=message.number(5),
        crc=message.number(6),
        sliced=bool(message.parts(7)),
    )


def _check_overlaps(entries: Mapping[str, Entry]) -> None:
    """Check that no two tensors share bytes. Otherwise, a small file could expand to a terabyte of
    tensors."""
    ordered = sorted(
        (entry.shard, entry.offset, entry.size, name)
        for name, entry in entries.items()
        if entry.size > 0
    )
    for (shard, offset, size, name), (next_shard, next_offset, _, next_name) in pairwise(ordered):
        if shard == next_shard and next_offset < offset + size:
            raise ValueError(f"the tensors {name} and {next_name} overlap")


def _text(key: bytes) -> str:
    # The keys of slices are not text. They are never read, but must stay distinct.
    return key.decode("utf8", "backslashreplace")


def _beside(prefix: Path, suffix: str) -> Path:
    # with_suffix would remove a suffix of the prefix itself.
    return prefix.with_name(prefix.name + suffix)

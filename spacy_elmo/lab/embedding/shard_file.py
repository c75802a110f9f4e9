"""Writer and lazy reader of shard files: safetensors files with a checksum and the vectors of consecutive
texts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from ...digest import Digest
from ..corpora.items import Shard

_DTYPES = {"F16": "<f2", "F32": "<f4", "I64": "<i8", "U8": "<u1"}
_TENSORS = ("offsets", "token_bytes", "token_offsets", "vectors")
_METADATA = {
    "source": str, "first": int, "items": int, "rows": int, "pooled": bool, "digest": str, "checksum": str,
}  # fmt: skip


def shard_name(number: int) -> str:
    """Return the name of a shard file, such as "shard-000012.safetensors" for number 12."""
    return f"shard-{number:06}.safetensors"


def encode_shard(
    shard: Shard, vectors: np.ndarray, tokens: Sequence[Sequence[str]], *, pooled: bool
) -> bytes:
    """Return the content of a shard file, the vectors and tokens of consecutive items (texts). Equal
    arguments give equal bytes.

    The file contains these tensors, where `rows` is the number of tokens of all items:

    - `vectors`: the argument `vectors`;
    - `offsets` (items + 1,) int64: item i has the tokens from `offsets[i]` to `offsets[i + 1] - 1`;
    - `token_bytes` (bytes,) uint8: the tokens of all items in UTF-8, concatenated;
    - `token_offsets` (rows + 1,) int64: token j is `token_bytes[token_offsets[j] : token_offsets[j + 1]]`.

    Args:
        shard: the items, and their position in the corpus.
        vectors: vectors of all items, concatenated, float16 or float32. The shape is (layers, rows, width),
            or (layers, items, width) if `pooled`. Vectors of the average or the top layer have no axis for
            layers.
        tokens: the tokens of each item.
        pooled: True if there is one vector per item. False: there is one vector per token.
    """
    words = [token.encode("utf8") for item in tokens for token in item]
    tensors = {
        "vectors": vectors,
        "offsets": _offsets([len(item) for item in tokens]),
        "token_bytes": np.frombuffer(b"".join(words), dtype=np.uint8),
        "token_offsets": _offsets([len(word) for word in words]),
    }
    metadata = {
        "source": shard.source,
        "first": shard.first,
        "items": len(tokens),
        "rows": len(words),
        "pooled": pooled,
        "digest": shard.digest,
    }
    metadata["checksum"] = _checksum(metadata, (tensors[name] for name in _TENSORS))
    # Store one entry, because safetensors writes several entries in random order.
    return safetensors.numpy.save(tensors, {"shard": json.dumps(metadata)})


def _offsets(sizes: list[int]) -> np.ndarray:
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


def _checksum(metadata: dict[str, Any], tensors: Iterable[np.ndarray]) -> str:
    """Return one digest of the metadata and of all tensors (shapes, data types and values)."""
    checksum = Digest(json.dumps(metadata, sort_keys=True).encode())
    for tensor in tensors:
        checksum.update(f"{tensor.dtype.str} {tensor.shape}".encode())
        checksum.update(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    return checksum.hexdigest()


class ShardFile:
    """Shard file, mapped into memory. It stores the vectors and tokens of consecutive items (texts). Only the
    requested items are read.

    Raises:
        OSError: the file does not exist.
        ValueError: the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Do not use `safe_open`: it copies, and cannot slice an item without tokens at the end of a tensor.
        is_empty = not path.stat().st_size  # an empty file cannot be mapped
        self._bytes = np.asarray([] if is_empty else np.memmap(path, mode="r"), dtype=np.uint8)
        self.metadata: dict[str, Any] = self._checked(self._read_header)
        self._tensors = self._checked(self._map_tensors)

    def verify(self) -> None:
        """Compare the content of the file with the checksum in the file. This method reads the whole file.

        Raises:
            ValueError: the file has changed since it was written.
        """
        metadata = {name: value for name, value in self.metadata.items() if name != "checksum"}
        checksum = _checksum(metadata, (self._tensors[name] for name in _TENSORS))
        if self.metadata["checksum"] != checksum:
            raise self._damaged()

    def _checked(self, parse: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Call the function `parse`, and turn any exception into the error for a damaged file."""
        try:
            return parse()
        except Exception as error:
            raise self._damaged() from error

    def _damaged(self) -> ValueError:
        return ValueError(
            f"{self.path} is damaged, or is not a shard of vectors. Delete it, and run `embed` again with resume"
            " (`--resume`)"
        )

    def _read_header(self) -> dict[str, Any]:
        self._start = 8 + int.from_bytes(self._bytes[:8].tobytes(), "little")
        self._header = json.loads(self._bytes[8 : self._start].tobytes())
        metadata = json.loads(self._header["__metadata__"]["shard"])
        if {name: type(value) for name, value in metadata.items()} != _METADATA:
            raise ValueError("metadata")
        return metadata

    def _map_tensors(self) -> dict[str, np.ndarray]:
        data = self._bytes[self._start :]
        if max(self._header[name]["data_offsets"][1] for name in _TENSORS) != len(data):
            raise ValueError("truncated")
        tensors = {}
        for name in _TENSORS:
            entry = self._header[name]
            begin, end = entry["data_offsets"]
            dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
            if min(begin, end, *shape) < 0 or end - begin != math.prod(shape) * dtype.itemsize:
                raise ValueError(name)
            tensors[name] = data[begin:end].view(dtype).reshape(shape)
        items, rows = self.metadata["items"], self.metadata["rows"]
        text = tensors["token_bytes"]
        _check_offsets(tensors["offsets"], items, rows)
        _check_offsets(tensors["token_offsets"], rows, len(text))
        if tensors["vectors"].shape[-2] != (items if self.metadata["pooled"] else rows):
            raise ValueError("rows")
        return tensors

    def tensor(self, name: str) -> np.ndarray:
        """Return a read-only tensor of the file. `encode_shard` lists the names and shapes of the tensors."""
        return self._tensors[name]

    def vectors(self, item: int) -> np.ndarray:
        """Return the vectors of an item (text), (layers, tokens, width). There is no axis for tokens if the
        vectors are pooled, and no axis for layers if the file stores only the average or the top layer.

        Args:
            item: index of the item in the shard.
        """
        vectors, offsets = self.tensor("vectors"), self.tensor("offsets")
        if self.metadata["pooled"]:
            return vectors[..., item, :]
        return vectors[..., offsets[item] : offsets[item + 1], :]

    def tokens(self, item: int) -> list[str]:
        """Return the tokens of an item (text).

        Args:
            item: index of the item in the shard.

        Raises:
            ValueError: the bytes of the tokens are damaged.
        """
        start, end = self.tensor("offsets")[item : item + 2]
        borders = self.tensor("token_offsets")[start : end + 1].tolist()
        text = self.tensor("token_bytes")
        try:
            return [
                text[borders[j] : borders[j + 1]].tobytes().decode("utf8")
                for j in range(end - start)
            ]
        except UnicodeDecodeError as error:
            raise self._damaged() from error


def _check_offsets(offsets: np.ndarray, n: int, end: int) -> None:
    if offsets.dtype != np.int64 or offsets.shape != (n + 1,):
        raise ValueError("offsets")
    if offsets[0] != 0 or offsets[-1] != end or (np.diff(offsets) < 0).any():
        raise ValueError("offsets")

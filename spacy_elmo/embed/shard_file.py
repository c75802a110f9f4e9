"""One shard on disk: a safetensors file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from ..corpora.items import Shard

_DTYPES = {"F16": "<f2", "F32": "<f4", "I64": "<i8", "U8": "<u1"}


def pack(
    shard: Shard, vectors: np.ndarray, tokens: Sequence[Sequence[str]], *, pooled: bool
) -> bytes:
    """The content of a shard's file. The same for the same arguments, to the last byte.

    The tensors are

    - `vectors` (..., rows, width), a row per token of all items; or (..., items, width), pooled. The axis before, if
      there is one, is the layers';
    - `offsets` (items + 1,) int64: item i has the rows from `offsets[i]` to `offsets[i + 1]`;
    - `token_bytes` (bytes,) uint8, the tokens of all rows in UTF-8, end to end;
    - `token_offsets` (rows + 1,) int64: token j has the bytes from `token_offsets[j]` to `token_offsets[j + 1]`.

    Args:
        vectors: float16 or float32.
        tokens: those of each item.
        pooled: `vectors` has a row per item.
    """
    words = [token.encode("utf8") for item in tokens for token in item]
    tensors = {
        "vectors": vectors,
        "offsets": _offsets([len(item) for item in tokens]),
        "token_bytes": np.frombuffer(b"".join(words), dtype=np.uint8),
        "token_offsets": _offsets([len(word) for word in words]),
    }
    about = {
        "source": shard.source,
        "first": shard.first,
        "items": len(tokens),
        "rows": len(words),
        "pooled": pooled,
        "digest": shard.digest,
    }
    # One entry, because safetensors writes several in a random order.
    return safetensors.numpy.save(tensors, {"shard": json.dumps(about)})


def _offsets(sizes: list[int]) -> np.ndarray:
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


class ShardFile:
    """A shard's file, mapped into memory: nothing is read but what is asked for.

    Raises:
        OSError: there is no such file.
        ValueError: it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Not `safe_open`: it cannot slice an item without tokens at the end of a tensor, and copies.
        empty = not path.stat().st_size  # which cannot be mapped
        self._bytes = np.asarray([] if empty else np.memmap(path, mode="r"), dtype=np.uint8)
        try:
            self._header, self._start = self._read_header()
            self.about: dict[str, Any] = json.loads(self._header["__metadata__"]["shard"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} is damaged, or no shard of vectors. Delete it and run the command again with --resume"
            ) from error

    def _read_header(self) -> tuple[dict[str, Any], int]:
        start = 8 + int.from_bytes(self._bytes[:8].tobytes(), "little")
        header = json.loads(self._bytes[8:start].tobytes())
        if max(header[name]["data_offsets"][1] for name in header if name != "__metadata__") != (
            len(self._bytes) - start
        ):
            raise ValueError("truncated")
        return header, start

    def tensor(self, name: str) -> np.ndarray:
        """A tensor of the file, by the names of `pack`; read-only."""
        entry = self._header[name]
        begin, end = (self._start + offset for offset in entry["data_offsets"])
        return self._bytes[begin:end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])

    def vectors(self, item: int) -> np.ndarray:
        """(..., n_tokens, width) of an item of the shard; pooled (..., width)."""
        vectors, offsets = self.tensor("vectors"), self.tensor("offsets")
        if self.about["pooled"]:
            return vectors[..., item, :]
        return vectors[..., offsets[item] : offsets[item + 1], :]

    def tokens(self, item: int) -> list[str]:
        """The tokens of an item of the shard."""
        start, end = self.tensor("offsets")[item : item + 2]
        borders = self.tensor("token_offsets")[start : end + 1].tolist()
        text = self.tensor("token_bytes")
        return [
            text[borders[j] : borders[j + 1]].tobytes().decode("utf8") for j in range(end - start)
        ]

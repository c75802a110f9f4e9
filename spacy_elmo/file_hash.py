"""The hash of a whole file."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

_BLOCK_BYTES = 1 << 20


class Hasher(Protocol):
    """The interface of the hashes of hashlib and xxhash."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""

    def hexdigest(self) -> str:
        """Return the digest of all bytes so far in hexadecimal digits."""


def hash_file(path: Path, hasher: Hasher) -> str:
    """Return the digest of a file of any size, in hexadecimal digits.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            hasher.update(block)
    return hasher.hexdigest()

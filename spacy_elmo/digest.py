"""Digests (hash values) of files, settings and arrays, to detect damage and to identify content.

The algorithm is XXH3 with 128 bits. It is as fast as memory, but not cryptographic. So the digests detect
accidental changes, not attacks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

import xxhash

Digest = xxhash.xxh3_128
"""Hash class with the interface of hashlib. A digest has 16 bytes, or 32 hexadecimal digits."""

_BLOCK_BYTES = 1 << 20


class Hasher(Protocol):
    """Interface of `Digest` and of the hash objects in hashlib."""

    def update(self, data: bytes, /) -> None:
        """Add bytes to the digest."""

    def hexdigest(self) -> str:
        """Return the digest of all added bytes, in hexadecimal digits."""


def json_digest(value: Any) -> str:
    """Return the digest of a JSON value, 32 hexadecimal digits. The order of keys has no effect."""
    return Digest(json.dumps(value, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path, hasher: Hasher | None = None) -> str:
    """Return the digest of a file, in hexadecimal digits. The file can be larger than the memory.

    Args:
        hasher: new, empty hash object of another algorithm, for example to check a published checksum.
            Default: `Digest`.
    """
    hasher = hasher or Digest()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            hasher.update(block)
    return hasher.hexdigest()

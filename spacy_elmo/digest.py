"""Digests (hash values) of files, settings and arrays, to detect damage and to identify content.

The algorithm is XXH3 with 128 bits. It is as fast as memory, but not cryptographic. So the digests detect
accidental changes, not attacks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xxhash

Digest = xxhash.xxh3_128
"""Hash class with the interface of hashlib. A digest has 16 bytes, or 32 hexadecimal digits."""

_BLOCK_BYTES = 1 << 20


def json_digest(value: Any) -> str:
    """Return the digest of a JSON value, 32 hexadecimal digits. The order of keys has no effect."""
    return Digest(json.dumps(value, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path, algorithm: Callable[[], Any] = Digest) -> str:
    """Return the digest of a file, in hexadecimal digits. The file can be larger than the memory. `algorithm` is
    `Digest` or a hash of hashlib, for example to check a published checksum."""
    hasher = algorithm()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            hasher.update(block)
    return str(hasher.hexdigest())

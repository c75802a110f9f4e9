"""Digests of files, settings and arrays, which detect damage and identify the content of a cache.

The algorithm is XXH3 with 128 bits. It is as fast as reading memory, but not cryptographic: it detects accidents, not
attacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import xxhash

Digest = xxhash.xxh3_128
"""Class of digests, with the interface of hashlib: `update`, `digest` (16 bytes), `hexdigest` (32 digits)."""

_BLOCK_BYTES = 1 << 20
_DIGESTS = "digests"


class Hasher(Protocol):
    """Interface of `Digest` and of the hashes in hashlib."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""

    def hexdigest(self) -> str:
        """Return the digest of all bytes so far in hexadecimal digits."""


def json_digest(value: Any) -> str:
    """Return the digest of a value of JSON types, 32 hexadecimal digits. It ignores the order of keys."""
    return Digest(json.dumps(value, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path, hasher: Hasher | None = None) -> str:
    """Return the digest of a file of any size, in hexadecimal digits.

    Args:
        hasher: another algorithm, for a published checksum.

    Raises:
        OSError: the file cannot be read.
    """
    hasher = hasher or Digest()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            hasher.update(block)
    return hasher.hexdigest()


def with_digests(
    content: Mapping[str, Any], path: Path, files: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the content of a JSON file with an additional entry `digests`.

    The entry has the digest of all other entries, and the digests of other files.

    Args:
        content: an object of JSON types.
        path: path to which the content will be written.
        files: names of other files in the same folder.

    Raises:
        OSError: a file cannot be read.
    """
    digests = {name: file_digest(path.parent / name) for name in files}
    return {**content, _DIGESTS: {**digests, path.name: json_digest(content)}}


def check_digests(content: Mapping[str, Any], path: Path, files: Iterable[str] = ()) -> None:
    """Compare the content of a JSON file, and other files, with the digests that `with_digests` has added.

    Raises:
        OSError: a file is missing or cannot be read.
        ValueError: the content or a file has changed since it was written; the message starts with its path.
    """
    digests = content.get(_DIGESTS)
    rest = {name: value for name, value in content.items() if name != _DIGESTS}
    for name in (path.name, *files):
        file = path.parent / name
        digest = json_digest(rest) if name == path.name else file_digest(file)
        if not isinstance(digests, dict) or digests.get(name) != digest:
            raise ValueError(f"{file} has changed since it was written")

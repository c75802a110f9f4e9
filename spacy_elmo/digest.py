"""Digests of files, settings and arrays, which detect damage and name what a cache contains: XXH3 with 128 bits.

XXH3 keeps pace with the memory. It detects accidents; it is no signature.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import xxhash

Digest = xxhash.xxh3_128
"""Digest of bytes, all at once or by `update`: 16 bytes (`digest`), 32 hexadecimal digits (`hexdigest`)."""

_BLOCK_BYTES = 1 << 20
_DIGESTS = "digests"


class Hasher(Protocol):
    """The interface of `Digest` and of the hashes of hashlib."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""

    def hexdigest(self) -> str:
        """Return the digest of all bytes so far in hexadecimal digits."""


def json_digest(value: Any) -> str:
    """Return the digest of JSON types, whatever the order of the keys; 32 hexadecimal digits."""
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
    """Return the content of a JSON file, with the entry `digests`: that of all other entries, and those of files.

    Args:
        content: JSON types.
        path: where the content is to be written.
        files: names of files beside it.

    Raises:
        OSError: a file cannot be read.
    """
    digests = {name: file_digest(path.parent / name) for name in files}
    return {**content, _DIGESTS: {**digests, path.name: json_digest(content)}}


def check_digests(content: Mapping[str, Any], path: Path, files: Iterable[str] = ()) -> None:
    """Compare the content of a JSON file, and files beside it, with the digests that `with_digests` has added.

    Raises:
        OSError: a file is missing or cannot be read.
        ValueError: the content or a file has changed since it was written; the message begins with its path.
    """
    digests = content.get(_DIGESTS)
    rest = {name: value for name, value in content.items() if name != _DIGESTS}
    for name in (path.name, *files):
        file = path.parent / name
        digest = json_digest(rest) if name == path.name else file_digest(file)
        if not isinstance(digests, dict) or digests.get(name) != digest:
            raise ValueError(f"{file} has changed since it was written")

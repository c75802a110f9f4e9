"""Digests (hash values) of files, settings and arrays, to detect damage and to identify the content of
caches.

The algorithm is XXH3 with 128 bits. It is as fast as memory, but not cryptographic. So the digests detect
accidental changes, not attacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import xxhash

Digest = xxhash.xxh3_128
"""Hash class with the interface of hashlib. A digest has 16 bytes, or 32 hexadecimal digits."""

_BLOCK_BYTES = 1 << 20
_DIGESTS = "digests"


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
    """Return the content of a JSON file with an added entry `digests`, which `check_digests` can check.

    The entry contains a digest of the JSON content without this entry, and a digest of each file in `files`.

    Args:
        content: a JSON object.
        path: path of the JSON file. The function does not write the file.
        files: names of other files in the same folder.

    Raises:
        OSError: a file cannot be read.
    """
    digests = {name: file_digest(path.parent / name) for name in files}
    return {**content, _DIGESTS: {**digests, path.name: json_digest(content)}}


def check_digests(content: Mapping[str, Any], path: Path, files: Iterable[str] = ()) -> None:
    """Check that a JSON file and other files have not changed since `with_digests` computed the digests.

    Args:
        content: the JSON object in the file, with the entry `digests`.
        path: path of the JSON file.
        files: names of other files in the same folder.

    Raises:
        OSError: a file is missing or cannot be read.
        ValueError: a file has changed. The message starts with the path of the file.
    """
    digests = content.get(_DIGESTS)
    rest = {name: value for name, value in content.items() if name != _DIGESTS}
    for name in (path.name, *files):
        file = path.parent / name
        digest = json_digest(rest) if name == path.name else file_digest(file)
        if not isinstance(digests, dict) or digests.get(name) != digest:
            raise ValueError(f"{file} has changed since it was written")

"""Digests of the files of a prepared corpus, which detect damage: a changed id would be another word."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xxhash

from ...file_hash import hash_file

DESCRIPTION = "corpus.json"
"""The file that contains the digests, also that of its other entries."""
_DIGESTS = "digests"


def with_digests(folder: Path, description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of `corpus.json` with the digests of all other files of the folder."""
    digests = {path.name: _file_digest(path) for path in sorted(folder.iterdir())}
    digests[DESCRIPTION] = _description_digest(description)
    return {**description, _DIGESTS: digests}


def check_digests(folder: Path, description: Mapping[str, Any]) -> None:
    """Compare the files of a corpus with their digests; warn if there are none.

    Raises:
        OSError: a file is missing.
        ValueError: a file has changed since it was written.
    """
    if _DIGESTS not in description:
        warnings.warn(
            f"{folder} was prepared by an earlier version, without digests: damage to its files is not detected."
            " Prepare it again to add them",
            stacklevel=4,
        )
        return
    digests = dict(description[_DIGESTS])
    # A damaged name may be a path out of the folder, even that of a device.
    if missing := sorted(digests.keys() - {path.name for path in folder.iterdir()}):
        raise FileNotFoundError(
            f"{folder} does not contain {', '.join(missing)}, as corpus.json says"
        )
    for name, digest in digests.items():
        is_description = name == DESCRIPTION
        if digest != (
            _description_digest(description) if is_description else _file_digest(folder / name)
        ):
            raise ValueError(f"{name} has changed since it was written")


def _file_digest(path: Path) -> str:
    return hash_file(path, xxhash.xxh3_128())


def _description_digest(description: Mapping[str, Any]) -> str:
    content = {name: value for name, value in description.items() if name != _DIGESTS}
    return xxhash.xxh3_128_hexdigest(json.dumps(content, sort_keys=True).encode())

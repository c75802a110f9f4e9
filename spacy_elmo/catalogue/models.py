"""Catalogue of public models, by name (models.json).

URLs and licences are copied from the authors' pages (`source`), and `licence` may be "not stated". They have not been
verified by a download. So a checksum may be missing, and a host may no longer exist.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import srsly

FILE = Path(__file__).with_name("models.json")


@dataclass(frozen=True)
class RemoteFile:
    """A file that can be downloaded.

    Raises:
        ValueError: the URL is not http(s) or contains no file name, or the checksum is not a SHA-256.
    """

    url: str
    sha256: str | None = None
    """SHA-256 of the file in hexadecimal digits, if it is known."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{self.url!r} is not a URL, such as https://host/file")
        if self.name in ("", ".", ".."):
            raise ValueError(
                f"The URL {self.url!r} contains no file name: its path ends with {parts.path[-3:]!r}"
            )
        if self.sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", self.sha256):
            raise ValueError(
                f"{self.sha256!r} (`--sha256`) is not a SHA-256, which has 64 hexadecimal digits"
            )

    @property
    def name(self) -> str:
        """File name: the last part of the URL."""
        return PurePosixPath(urlsplit(self.url).path).name


@dataclass(frozen=True)
class PublicModel:
    """A public model of the catalogue."""

    name: str
    languages: tuple[str, ...]
    """Language codes (ISO 639); empty for data that is not natural language."""
    format: str
    """Name of the format in `python -m spacy elmo convert`."""
    parameters: int | None
    licence: str
    about: str
    source: str
    """URL of the authors' page with this information."""
    files: tuple[RemoteFile, ...]


def known_models() -> dict[str, PublicModel]:
    """Return all models of the catalogue, by name."""
    return {record["name"]: _model(record) for record in srsly.read_json(FILE)}


def find_model(name: str, models: Mapping[str, PublicModel]) -> PublicModel:
    """Return a model by its name.

    Raises:
        ValueError: there is no model of this name. The message suggests similar names.
    """
    if name in models:
        return models[name]
    similar = ", ".join(difflib.get_close_matches(name, models))
    raise ValueError(
        f"There is no public model {name!r}." + (f" Similar names are {similar}." if similar else "")
        + " Run `download` without a name to list all models, or give the URL of a file"
    )  # fmt: skip


def _model(record: dict[str, Any]) -> PublicModel:
    files = tuple(RemoteFile(url, sha256) for url, sha256 in record["files"].items())
    return PublicModel(**record | {"languages": tuple(record["languages"]), "files": files})

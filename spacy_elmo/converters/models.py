"""Catalogue of public models. The file models.json contains an entry for each model.

The URLs and licences in an entry are copied from the web page of the authors (`source`). If this page names
no licence, `licence` is "not stated". The model files were not downloaded to verify the entries, so some
checksums are missing, and some URLs possibly no longer work.
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
    """A file that can be downloaded from a URL.

    Raises:
        ValueError: the URL is not an http or https URL, or contains no file name.
        ValueError: the checksum is not a SHA-256.
    """

    url: str
    sha256: str | None = None
    """SHA-256 of the file in hexadecimal digits; None: unknown."""

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
        """Name of the file, the last part of the URL."""
        return PurePosixPath(urlsplit(self.url).path).name


@dataclass(frozen=True)
class PublicModel:
    """Entry in the catalogue of public models, which describes one model."""

    name: str
    languages: tuple[str, ...]
    """Language codes (ISO 639); empty if the training data are not natural language."""
    format: str
    """Name of the file format, the first argument of `python -m spacy elmo convert`."""
    parameters: int | None
    licence: str
    about: str
    source: str
    """URL of the authors' web page, from which this entry is copied."""
    files: tuple[RemoteFile, ...]


def known_models() -> dict[str, PublicModel]:
    """Return the models of the catalogue as a dict from the name of each model to its entry."""
    return {record["name"]: _model(record) for record in srsly.read_json(FILE)}


def find_model(name: str, models: Mapping[str, PublicModel]) -> PublicModel:
    """Return the public model that has a given name.

    Args:
        models: the models to search, by name (see `known_models`).

    Raises:
        ValueError: there is no model with this name. The message suggests similar names.
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

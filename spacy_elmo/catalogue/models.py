"""The catalogue: public models, by name, with what is known of them (models.json).

Addresses and licences are as their authors' pages give them (`source`), where `licence` may be "not stated". Nobody has
fetched the files to check them: where there is no checksum, none is known, and a host may be gone.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

FILE = Path(__file__).with_name("models.json")


@dataclass(frozen=True)
class RemoteFile:
    """A file that can be downloaded.

    Raises:
        ValueError: the address is not one of http or https, or names no file; or the checksum is none.
    """

    url: str
    sha256: str | None = None
    """Its checksum in hexadecimal digits, if it is known."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{self.url!r} is no address of the form https://host/file")
        if self.name in ("", ".", ".."):
            raise ValueError(f"{self.url!r} names no file: its path ends in {parts.path[-3:]!r}")
        if self.sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", self.sha256):
            raise ValueError(f"{self.sha256!r} is no SHA-256, which has 64 hexadecimal digits")

    @property
    def name(self) -> str:
        """The last part of the address."""
        return PurePosixPath(urlsplit(self.url).path).name


@dataclass(frozen=True)
class Model:
    """A public model."""

    name: str
    languages: tuple[str, ...]
    """Codes of ISO 639; none for what is no language."""
    format: str
    """That of `python -m spacy elmo convert`."""
    parameters: int | None
    licence: str
    about: str
    source: str
    """The page that says so."""
    files: tuple[RemoteFile, ...]


def known_models() -> dict[str, Model]:
    """All models of the catalogue, by name."""
    return {record["name"]: _model(record) for record in json.loads(FILE.read_text("utf8"))}


def find_model(name: str, models: Mapping[str, Model]) -> Model:
    """A model by its name.

    Raises:
        ValueError: there is none of this name. Names those that are spelt like it.
    """
    if name in models:
        return models[name]
    near = difflib.get_close_matches(name, models)
    raise ValueError(
        f"No model {name!r} in the catalogue" + (f"; there is {', '.join(near)}" if near else "")
        + ". Without a name, `download` lists them; the address of a file can be given instead."
    )  # fmt: skip


def _model(record: dict[str, Any]) -> Model:
    files = tuple(RemoteFile(url, sha256) for url, sha256 in record["files"].items())
    return Model(**record | {"languages": tuple(record["languages"]), "files": files})

"""The catalogue of public models (models.json), and their download to a cache folder.

The URLs and licences in the catalogue are copied from the web pages of the authors (`source`). If the page names no
licence, `licence` is "not stated". The files were not downloaded to verify the entries, so checksums are missing, and
some URLs possibly no longer work.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import requests
import srsly
from tqdm import tqdm

from ..digest import file_digest
from ..files import atomic_file

CATALOGUE = Path(__file__).with_name("models.json")
CACHE_VARIABLE = "SPACY_ELMO_CACHE"
_SECONDS_OF_SILENCE = 30.0
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class PublicModel:
    """Entry in the catalogue of public models."""

    name: str
    languages: list[str]
    """Language codes (ISO 639); empty if the training data are not natural language."""
    format: str
    """Name of the file format, the first argument of `python -m spacy elmo convert`."""
    parameters: int | None
    licence: str
    about: str
    source: str
    """URL of the authors' web page, from which this entry is copied."""
    files: dict[str, str | None]
    """{URL: SHA-256 of the file in hexadecimal digits, or None if it is unknown}."""
    options: dict[str, str] = field(default_factory=dict)
    """{option of `convert`: name of the downloaded file for it}."""


def known_models() -> dict[str, PublicModel]:
    """Return the models of the catalogue as {name: entry}."""
    return {record["name"]: PublicModel(**record) for record in srsly.read_json(CATALOGUE)}


def find_model(name: str) -> PublicModel:
    """Return the public model that has a given name."""
    models = known_models()
    if name in models:
        return models[name]
    similar = ", ".join(difflib.get_close_matches(name, models))
    raise ValueError(
        f"There is no public model {name!r}." + (f" Similar names are {similar}." if similar else "")
        + " Run `download` without a name to list all models"
    )  # fmt: skip


def cache_folder() -> Path:
    """Return the folder for downloads: the environment variable SPACY_ELMO_CACHE, or `~/.cache/spacy-elmo`."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "spacy-elmo")


def fetch(url: str, sha256: str | None, folder: Path, *, progress: bool = False) -> Path:
    """Download a file unless it is already in a folder, and return the path of the file. The file gets its name
    when the download is complete.

    Args:
        sha256: expected SHA-256; None: unknown.
        folder: folder for the file. A missing folder is created.
        progress: show a progress bar on standard error.
    """
    path = folder / PurePosixPath(urlsplit(url).path).name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as partial:
            _transfer(url, partial, progress)
            _check(partial, url, sha256)
    _check(path, path, sha256)
    return path


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    return file_digest(path, hashlib.sha256)


def _transfer(url: str, path: Path, progress: bool) -> None:
    try:
        with (
            requests.get(url, stream=True, timeout=_SECONDS_OF_SILENCE) as response,
            path.open("wb") as file,
        ):
            response.raise_for_status()
            total = int(response.headers.get("Content-Length", 0)) or None
            with tqdm(total=total, unit="B", unit_scale=True, disable=not progress) as bar:
                for chunk in response.iter_content(_CHUNK_BYTES):
                    file.write(chunk)
                    bar.update(len(chunk))
    except requests.RequestException as error:
        # Not an OSError, which `atomic_file` would report as a failure to write the file.
        raise ValueError(f"Could not download {url}, so nothing was saved: {error}") from error


def _check(path: Path, shown: str | Path, expected: str | None) -> None:
    if expected is not None and (sha256 := sha256_of(path)) != expected.lower():
        raise ValueError(f"{shown}: expected the SHA-256 {expected}, but got {sha256}")

"""Downloads into the cache, on request only; a file appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .models import RemoteFile

CACHE_VARIABLE = "SPACY_ELMO_CACHE"
_SECONDS_OF_SILENCE = 30.0
_CHUNK_BYTES = 1 << 20


def cache_folder() -> Path:
    """Return the folder for downloads: the environment variable SPACY_ELMO_CACHE, or the platform's cache folder."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder)
    return Path(_pooch().os_cache("spacy-elmo"))


def folder_of(url: str) -> str:
    """Return a folder name for a file that is not in the catalogue; files of the same name from other addresses get
    other folders."""
    return hashlib.sha256(url.encode()).hexdigest()[:16]


def fetch(file: RemoteFile, folder: Path, *, progress: bool = False) -> Path:
    """Return the path of a file in the cache, after downloading it if it is missing.

    A download is written under another name and renamed when it is complete and its checksum, if known, agrees; several
    processes may do this at once. An existing file with another checksum is replaced.

    Args:
        folder: the folder of the file, created if it does not exist.
        progress: show a progress bar on standard error.

    Raises:
        OSError: the server does not answer, refuses, ends the transfer early or sends nothing for 30 seconds, or the
            folder is not writable.
        ValueError: the checksum differs, or pooch is missing.
    """
    pooch = _pooch()
    import requests

    # pooch's log messages would repeat those of the command.
    pooch.get_logger().setLevel("WARNING")
    with ExitStack() as open_responses:

        def close_later(response: requests.Response, **_: Any) -> None:
            open_responses.callback(response.close)

        downloader = pooch.HTTPDownloader(
            progressbar=progress,
            chunk_size=_CHUNK_BYTES,
            timeout=_SECONDS_OF_SILENCE,
            # pooch leaves the connection of a failed download open.
            hooks={"response": close_later},
        )
        try:
            path = pooch.retrieve(
                file.url, file.sha256, fname=file.name, path=folder, downloader=downloader
            )
        except requests.RequestException as error:
            raise OSError(
                f"{file.url} could not be downloaded, and nothing was kept: {error}"
            ) from error
    return Path(path)


def sha256_of(path: Path) -> str:
    """Compute the SHA-256 of a file, in hexadecimal digits."""
    return str(_pooch().file_hash(str(path)))


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise ValueError("Downloads need pooch: pip install spacy-elmo[download]") from error
    return pooch

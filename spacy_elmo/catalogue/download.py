"""Files from the network into the cache: only when asked, whole or not at all."""

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
    """Where downloads are kept: the environment variable SPACY_ELMO_CACHE, or the platform's folder for caches."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    return Path(_pooch().os_cache("spacy-elmo"))


def folder_of(url: str) -> str:
    """The name of the folder of a file that has no model's name: other files of the same name lie elsewhere."""
    return hashlib.sha256(url.encode()).hexdigest()[:16]


def fetch(file: RemoteFile, folder: Path, *, progress: bool = False) -> Path:
    """A file in the cache, downloaded if it is not there.

    It is written under another name and moved when it is whole and has the checksum, if there is one to have; several
    processes may do so at once. A file that is there with another checksum is replaced.

    Args:
        folder: is made if need be.
        progress: a bar on standard error.

    Raises:
        OSError: the server does not answer, refuses, breaks off or falls silent for 30 seconds, or the folder is
            not writable.
        ValueError: the checksum is another one, or pooch is missing.
    """
    pooch = _pooch()
    import requests

    # Its messages are for programs that log; what a user should know is said by the command.
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
    """The checksum of a file, in hexadecimal digits."""
    return str(_pooch().file_hash(str(path)))


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise ValueError("Downloads need pooch: pip install spacy-elmo[download]") from error
    return pooch

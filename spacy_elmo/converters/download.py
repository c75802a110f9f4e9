"""Download of model files to a cache folder, only if the user asks for it.

After the first download of a file NAME, the checksum of the file is stored in `.NAME.sha256` in the same
folder, to check later downloads.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import requests
from tqdm import tqdm

from ..digest import Digest, file_digest
from ..files import atomic_file, atomic_write
from ..limits import MAX_BYTES
from .models import RemoteFile

CACHE_VARIABLE = "SPACY_ELMO_CACHE"
_SECONDS_OF_SILENCE = 30.0
_CHUNK_BYTES = 1 << 20


class _Interrupted(Exception):
    """Network failure during a download. This class is not a subclass of OSError, because `atomic_file` would
    report an OSError as a failure to write the file."""


def cache_folder() -> Path:
    """Return the folder for downloads.

    The environment variable SPACY_ELMO_CACHE sets the folder. Default: the folder `spacy-elmo` in the cache
    folder of the user, which the library platformdirs finds.

    Raises:
        ValueError: SPACY_ELMO_CACHE is not set, and platformdirs is not installed.
    """
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder)
    try:
        import platformdirs
    except ImportError as error:
        raise ValueError(
            f'Downloads need another library: pip install "spacy-elmo[download]". Or set the environment variable'
            f" {CACHE_VARIABLE} to the folder for downloads"
        ) from error
    return Path(platformdirs.user_cache_dir("spacy-elmo"))


def folder_of(url: str) -> str:
    """Return a folder name for a URL that is not in the catalogue. The name is a hash of the URL."""
    return Digest(url.encode()).hexdigest()[:16]


def fetch(file: RemoteFile, folder: Path, *, progress: bool = False) -> Path:
    """Download a file unless it is already in a folder, and return the path of the file.

    The file is downloaded under a temporary name, and gets its final name when the download is complete and
    the checksum is correct (if a checksum is known). So several processes can download the same file. An
    existing file with a wrong checksum is replaced.

    Args:
        file: URL of the file, and its checksum if known.
        folder: folder for the file. A missing folder is created.
        progress: show a progress bar on standard error.

    Raises:
        OSError: the server does not answer, refuses the request, ends the transfer early, or sends nothing
            for 30 seconds.
        OSError: the folder is not writable.
        ValueError: the checksum differs from the known checksum, or from the checksum of the first download.
        ValueError: the file is larger than 64 GiB.
    """
    path = folder / file.name
    expected = file.sha256 or first_checksum(path)
    if path.exists() and (expected is None or sha256_of(path) == expected.lower()):
        _keep_checksum(path, file.sha256)
        return path
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with atomic_file(path) as partial:
            with partial.open("wb") as target:
                sha256 = _transfer(file.url, target, progress)
            if expected is not None and sha256 != expected.lower():
                raise ValueError(_mismatch(file, path, expected, sha256))
    except _Interrupted as error:
        raise OSError(str(error)) from error
    _keep_checksum(path, file.sha256)
    return path


def first_checksum(path: Path) -> str | None:
    """Return the SHA-256 of the first download of a file. None if the file was never downloaded.

    Args:
        path: path of the downloaded file. The checksum is stored in the same folder.
    """
    try:
        return _checksum_file(path).read_text("ascii").strip()
    except FileNotFoundError:
        return None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    return file_digest(path, hashlib.sha256())


def _transfer(url: str, target: IO[bytes], progress: bool) -> str:
    """Write the content of a URL to a file, and return the SHA-256 of the content.

    The limit of 64 GiB applies to the decompressed content, because the server can send compressed data.
    """
    digest, size = hashlib.sha256(), 0
    for chunk in _chunks(url, progress):
        size += len(chunk)
        if size > MAX_BYTES:
            raise ValueError(
                f"{url} has more than {MAX_BYTES:,} bytes, the limit for a model, so nothing was saved"
            )
        target.write(chunk)
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(url: str, progress: bool) -> Iterator[bytes]:
    """Yield the content of a URL in chunks.

    Raises:
        _Interrupted: the download failed.
    """
    try:
        with requests.get(url, stream=True, timeout=_SECONDS_OF_SILENCE) as response:
            response.raise_for_status()
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else None
            with tqdm(total=total, unit="B", unit_scale=True, disable=not progress) as bar:
                for chunk in response.iter_content(_CHUNK_BYTES):
                    yield chunk
                    bar.update(len(chunk))
    except requests.RequestException as error:
        raise _Interrupted(f"Could not download {url}, so nothing was saved: {error}") from error


def _mismatch(file: RemoteFile, path: Path, expected: str, sha256: str) -> str:
    if file.sha256 is not None:
        return f"{file.url}: expected the SHA-256 {expected}, but got {sha256}. Nothing was saved"
    return (
        f"{file.url} has changed since the first download: its SHA-256 is {sha256}, and was {expected}. Nothing was"
        f" saved. If the authors have announced the change, delete {_checksum_file(path)}, and download it again"
    )


def _keep_checksum(path: Path, given: str | None) -> None:
    """Store the checksum of the first download. A checksum that the user has given replaces it."""
    stored = first_checksum(path)
    checksum = given.lower() if given is not None else stored or sha256_of(path)
    if checksum != stored:
        atomic_write(_checksum_file(path), f"{checksum}\n".encode())


def _checksum_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.sha256")

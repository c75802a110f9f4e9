"""Downloads into the cache, on request only; a file appears whole or not at all.

The checksum of the first download is kept beside the file, as `.NAME.sha256`, and later downloads are compared with it.
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
    """Failure of the network; no OSError, which in `atomic_file` is one of writing the file."""


def cache_folder() -> Path:
    """Return the folder for downloads: the environment variable SPACY_ELMO_CACHE, or the platform's cache folder."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder)
    try:
        import platformdirs
    except ImportError as error:
        raise ValueError(
            f"Downloads need `pip install spacy-elmo[download]`, or the folder for them: {CACHE_VARIABLE}"
        ) from error
    return Path(platformdirs.user_cache_dir("spacy-elmo"))


def folder_of(url: str) -> str:
    """Return a folder name for a file that is not in the catalogue; files of the same name from other addresses get
    other folders."""
    return Digest(url.encode()).hexdigest()[:16]


def fetch(file: RemoteFile, folder: Path, *, progress: bool = False) -> Path:
    """Return the path of a file in the cache, after downloading it if it is missing.

    A download is written under another name and renamed when it is complete and its checksum, if one is known, agrees;
    several processes may do this at once. An existing file with another checksum is replaced.

    Args:
        folder: the folder of the file, created if it does not exist.
        progress: show a progress bar on standard error.

    Raises:
        OSError: the server does not answer, refuses, ends the transfer early or sends nothing for 30 seconds, or the
            folder is not writable.
        ValueError: the checksum differs from the known one, or from that of the first download; or the content has
            more than 64 GiB.
    """
    path = folder / file.name
    expected = file.sha256 or first_checksum(path)
    if path.exists() and (expected is None or sha256_of(path) == expected.lower()):
        _keep_checksum(path)
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
    _keep_checksum(path)
    return path


def first_checksum(path: Path) -> str | None:
    """Return the SHA-256 of the first download of a file of the cache; None: it was never downloaded."""
    try:
        return _checksum_file(path).read_text("ascii").strip()
    except FileNotFoundError:
        return None


def sha256_of(path: Path) -> str:
    """Compute the SHA-256 of a file, in hexadecimal digits."""
    return file_digest(path, hashlib.sha256())


def _transfer(url: str, target: IO[bytes], progress: bool) -> str:
    """Write the content of an address to a file, and return its SHA-256.

    The bytes are counted after decompression, which the server may ask for and which can multiply them.
    """
    digest, size = hashlib.sha256(), 0
    for chunk in _chunks(url, progress):
        size += len(chunk)
        if size > MAX_BYTES:
            raise ValueError(
                f"{url} has more than {MAX_BYTES:,} bytes, too many for a model; nothing was kept"
            )
        target.write(chunk)
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(url: str, progress: bool) -> Iterator[bytes]:
    """Yield the content of an address.

    Raises:
        _Interrupted: it could not be downloaded.
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
        raise _Interrupted(
            f"{url} could not be downloaded, and nothing was kept: {error}"
        ) from error


def _mismatch(file: RemoteFile, path: Path, expected: str, sha256: str) -> str:
    if file.sha256 is not None:
        return f"{file.url}: expected the SHA-256 {expected} but got {sha256}; nothing was kept"
    return (
        f"{file.url} is another file than at the first download: SHA-256 {sha256}, and it was {expected}. Nothing was"
        f" kept. If its authors say that they have replaced it, delete {_checksum_file(path)}"
    )


def _keep_checksum(path: Path) -> None:
    if first_checksum(path) is None:
        atomic_write(_checksum_file(path), f"{sha256_of(path)}\n".encode())


def _checksum_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.sha256")

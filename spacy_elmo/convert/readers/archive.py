"""Archives as folders: a .zip or .tar.gz is unpacked into a temporary folder, and only what is harmless in it.

Nothing in an archive is trusted: neither its names (they could leave the folder) nor its sizes (a bomb of a megabyte
claims, or without claiming becomes, a petabyte). What counts is the bytes that really come out, while they come.
"""

from __future__ import annotations

import gzip
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

_ZIP, _TAR = (".zip",), (".tar.gz", ".tgz", ".tar")
# The largest public model, a checkpoint with its optimizer, has 5 GB. Weights hardly shrink when they are packed,
# vocabularies to a fifth; small archives may hold anything.
_MAX_BYTES = 64 << 30
_MAX_RATIO = 20
_SMALL_BYTES = 64 << 20
_MAX_MEMBERS = 10_000
_CHUNK_BYTES = 1 << 20
_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Opened:
    """What a user gave, as something that readers of folders and files can read."""

    path: Path
    """The folder or file itself; of an archive, the folder of its files: where it holds one folder alone, that one."""
    _given: Path
    _unpacked: Path

    def shown(self, text: object) -> str:
        """A path, or a message with paths, as the user knows them: `model.zip/options.json`."""
        return str(text).replace(str(self._unpacked), str(self._given))


@contextmanager
def opened(path: str | Path) -> Iterator[Opened]:
    """A folder or file as it is; an archive unpacked, for as long as the context lasts, into the folder for temporary
    files (the environment variable `TMPDIR` moves it).

    Args:
        path: ends in `.zip`, `.tar.gz`, `.tgz` or `.tar` if it is an archive.

    Raises:
        OSError: there is no such archive, or no room for its files.
        ValueError: it is damaged, encrypted or packed by a rare method; or it holds a link, a device, a path
            that leaves its folder, or far more bytes or files than a model. Errors (ValueError, OSError) that are
            raised inside the context show paths in the archive instead of temporary ones.
    """
    path = Path(path)
    if path.is_dir() or not path.name.lower().endswith(_ZIP + _TAR):
        yield Opened(path, path, path)
        return
    with TemporaryDirectory(prefix="spacy-elmo-") as name:
        folder = Path(name)
        try:
            _unpack(path, folder)
            yield Opened(_top(folder), path, folder)
        except (ValueError, OSError) as error:
            raise ValueError(Opened(folder, path, folder).shown(error)) from error


def _top(folder: Path) -> Path:
    entries = [entry for entry in folder.iterdir() if entry.name != "__MACOSX"]
    return _top(entries[0]) if len(entries) == 1 and entries[0].is_dir() else folder


def _unpack(archive: Path, folder: Path) -> None:
    members = _zip_members if archive.name.lower().endswith(_ZIP) else _tar_members
    budget = _Budget(archive)
    try:
        for number, member in enumerate(members(archive, budget)):
            if number == _MAX_MEMBERS:
                raise ValueError(f"{archive}: more than {_MAX_MEMBERS} files, which no model has")
            target = _target(archive, folder, member.name)
            if member.content is None:
                target.mkdir(parents=True, exist_ok=True)
            elif _write(member.content, target) != member.size:
                raise EOFError(f"{member.name} ends early")  # tarfile says nothing of it
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        gzip.BadGzipFile,
        zlib.error,
        struct.error,
        EOFError,
        UnicodeDecodeError,
    ) as error:
        raise ValueError(
            f"{archive}: not a readable archive, or truncated ({error or type(error).__name__})"
        ) from error


def _target(archive: Path, folder: Path, name: str) -> Path:
    # Windows' rules, on every system: they know both separators, and drives.
    path = PureWindowsPath(name)
    if path.anchor or ".." in path.parts:
        raise ValueError(f"{archive}: {name!r} leaves the archive's folder; nothing is unpacked")
    return folder.joinpath(*path.parts)


def _write(content: IO[bytes] | _Metered, target: Path) -> int:
    """Returns the bytes written."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:
        while chunk := content.read(_CHUNK_BYTES):
            file.write(chunk)
        return file.tell()


def _zip_members(archive: Path, budget: _Budget) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            if member.flag_bits & 1:
                raise ValueError(f"{archive}: {member.filename!r} is encrypted; unpack it yourself")
            # The others' decoders may give gigabytes for one call.
            if member.compress_type not in _PLAIN_METHODS:
                raise ValueError(
                    f"{archive}: {member.filename!r} is packed by a rare method"
                    f" ({member.compress_type}); unpack it yourself"
                )
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ValueError(_no_plain_file(archive, member.filename))
            if member.is_dir():
                yield _Member(member.filename)
                continue
            with file.open(member) as content:
                metered = _Metered(content.read, budget)
                yield _Member(member.filename, member.file_size, metered)


def _tar_members(archive: Path, budget: _Budget) -> Iterator[_Member]:
    packed = not archive.name.lower().endswith(".tar")
    with gzip.open(archive) if packed else archive.open("rb") as stream:
        # What is metered is the stream, because tarfile also reads headers of any length.
        metered: Any = _Metered(stream.read, budget)
        with tarfile.open(fileobj=metered, mode="r|") as file:
            for member in file:
                if member.isdir():
                    yield _Member(member.name)
                elif member.isreg() and not member.issparse():
                    yield _Member(member.name, member.size, file.extractfile(member))
                else:
                    raise ValueError(_no_plain_file(archive, member.name))
        while metered.read(_CHUNK_BYTES):
            pass  # to the end, where gzip checks its sum


def _no_plain_file(archive: Path, name: str) -> str:
    return (
        f"{archive}: {name!r} is a link, a device or a sparse file, which no model needs;"
        " nothing is unpacked"
    )


class _Member(NamedTuple):
    """A file in an archive, or without content a folder."""

    name: str
    size: int = 0
    content: IO[bytes] | _Metered | None = None


class _Budget:
    """The bytes that an archive may still give."""

    def __init__(self, archive: Path) -> None:
        size = archive.stat().st_size
        self._archive = archive
        self._allowed = self._left = min(_MAX_BYTES, max(_SMALL_BYTES, _MAX_RATIO * size))

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise ValueError(
                f"{self._archive}: holds more than {self._allowed:,} bytes, which is no model's ratio of packing"
                " (a zip bomb?); nothing is unpacked. If you trust it, unpack it yourself and give the folder"
            )


class _Metered:
    """A stream whose bytes are counted as they are read."""

    def __init__(self, read: Callable[[int], bytes], budget: _Budget) -> None:
        self._read = read
        self._budget = budget

    def read(self, size: int) -> bytes:
        data = self._read(size)
        self._budget.spend(len(data))
        return data

"""Archives as folders: a .zip or .tar.gz is unpacked into a temporary folder, if all of it is harmless.

Nothing in an archive is trusted: neither its names (they could leave the folder) nor its sizes (a megabyte can unpack
to a petabyte, whatever it declares). The limits apply to the bytes that are really unpacked, while they are.
"""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

from ... import limits
from .errors import one_error

_ZIP, _TAR = (".zip",), (".tar.gz", ".tgz", ".tar")
_CHUNK_BYTES = 1 << 20
_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Opened:
    """A folder or file given by the user, or the unpacked content of an archive."""

    path: Path
    """The folder or file itself; for an archive, the folder of its files, or the only folder inside that one."""
    _given: Path
    _unpacked: Path

    def shown(self, text: object) -> str:
        """Return a path, or a message with paths, with the archive in place of the temporary folder:
        `model.zip/options.json`."""
        return str(text).replace(str(self._unpacked), str(self._given))


@contextmanager
def opened(path: str | Path) -> Iterator[Opened]:
    """Yield a folder or file unchanged; unpack an archive for the duration of the context, into the folder for
    temporary files (the environment variable `TMPDIR` moves it).

    Args:
        path: a folder or file; an archive if it ends in `.zip`, `.tar.gz`, `.tgz` or `.tar`.

    Raises:
        OSError: the archive is missing, or there is no space for its files.
        ValueError: it is damaged, encrypted or packed by a rare method; or it contains a link, a device, a path
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
    with one_error(archive, "a readable archive"):
        for number, member in enumerate(members(archive, budget)):
            if number == limits.MAX_MEMBERS:
                raise ValueError(f"more than {limits.MAX_MEMBERS:,} files, too many for a model")
            target = _target(archive, folder, member.name)
            if member.content is None:
                target.mkdir(parents=True, exist_ok=True)
            elif _write(member.content, target) != member.size:
                raise EOFError(f"{member.name} ends early")  # tarfile does not report it


def _target(archive: Path, folder: Path, name: str) -> Path:
    # Windows' rules on every system, because they include both separators, and drives.
    path = PureWindowsPath(name)
    if path.anchor or ".." in path.parts:
        raise ValueError(f"{archive}: {name!r} leaves the archive's folder; nothing is unpacked")
    if len(path.parts) > limits.MAX_DEPTH:
        raise ValueError(
            f"{archive}: {name[:60]!r}... has more than {limits.MAX_DEPTH} folders inside each other"
        )
    return folder.joinpath(*path.parts)


def _write(content: IO[bytes] | _Metered, target: Path) -> int:
    """Write a member to a file and return the number of bytes."""
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
            # The decoders of other methods may return gigabytes from one call.
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
        # The stream is metered, not the members, because tarfile also reads headers of any length.
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
            pass  # to the end, where gzip verifies its checksum


def _no_plain_file(archive: Path, name: str) -> str:
    return (
        f"{archive}: {name!r} is a link, a device or a sparse file, which no model needs;"
        " nothing is unpacked"
    )


class _Member(NamedTuple):
    """A file in an archive or, without content, a folder."""

    name: str
    size: int = 0
    content: IO[bytes] | _Metered | None = None


class _Budget:
    """The number of bytes that may still be unpacked from an archive."""

    def __init__(self, archive: Path) -> None:
        size = archive.stat().st_size
        self._archive = archive
        self._allowed = self._left = limits.expanded_bytes(size)

    def spend(self, count: int) -> None:
        """Subtract some bytes.

        Raises:
            ValueError: no bytes are left.
        """
        self._left -= count
        if self._left < 0:
            raise ValueError(
                f"{self._archive}: contains more than {self._allowed:,} bytes, too many for a model in an archive of"
                " this size (a zip bomb?); nothing is unpacked. If you trust it, unpack it yourself and give the folder"
            )


class _Metered:
    """A stream whose bytes are counted as they are read."""

    def __init__(self, read: Callable[[int], bytes], budget: _Budget) -> None:
        self._read = read
        self._budget = budget

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes; see `_Budget.spend`."""
        data = self._read(size)
        self._budget.spend(len(data))
        return data

"""Safe unpacking of archives (.zip, .tar.gz) into a temporary folder.

Nothing in an archive is trusted. A file name could point outside the folder. A declared size could be wrong:
a megabyte can unpack to a petabyte. So the reader counts and limits the bytes while it unpacks them.
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
    """The folder or file that the user has named, or the unpacked content of the archive."""

    path: Path
    """The folder or file. For an archive: the folder with the unpacked content. If this folder contains
    nothing but a subfolder, the path is the path of the subfolder."""
    _given: Path
    _unpacked: Path

    def shown(self, text: object) -> str:
        """Replace the temporary paths in a text by paths in the archive, such as `model.zip/options.json`."""
        return str(text).replace(str(self._unpacked), str(self._given))


@contextmanager
def opened(path: str | Path) -> Iterator[Opened]:
    """Open a folder, a file or an archive for a `with` block.

    An archive is unpacked into a temporary folder, which is deleted after the block. The environment variable
    `TMPDIR` sets the location of temporary folders. If the block raises a ValueError or OSError for an
    archive, the function raises a ValueError in which the temporary paths are replaced by paths in the
    archive.

    Args:
        path: the folder, the file or the archive. An archive is a file with a name that ends in `.zip`,
            `.tar.gz`, `.tgz` or `.tar`.

    Raises:
        OSError: the temporary folder cannot be created.
        ValueError: the archive is missing, damaged, encrypted or compressed by an unsupported method, or the
            disk is full.
        ValueError: the archive contains a link, a device, a path outside the archive, or far more bytes or
            files than a model.
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
                raise ValueError(f"it has more than {limits.MAX_MEMBERS:,} files, the limit")
            target = _target(archive, folder, member.name)
            if member.content is None:
                target.mkdir(parents=True, exist_ok=True)
            elif _write(member.content, target) != member.size:
                raise EOFError(f"{member.name} ends early")  # tarfile does not report it


def _target(archive: Path, folder: Path, name: str) -> Path:
    # Use Windows' rules on every system, because they know both separators and drives.
    path = PureWindowsPath(name)
    if path.anchor or ".." in path.parts:
        raise ValueError(
            f"{archive}: the path {name!r} leads outside the archive, so nothing was unpacked"
        )
    if len(path.parts) > limits.MAX_DEPTH:
        raise ValueError(
            f"{archive}: the path {name[:60]!r}... has more than {limits.MAX_DEPTH} nested folders, the limit"
        )
    return folder.joinpath(*path.parts)


def _write(content: IO[bytes] | _Metered, target: Path) -> int:
    """Write a file of an archive to disk, and return the number of written bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:
        while chunk := content.read(_CHUNK_BYTES):
            file.write(chunk)
        return file.tell()


def _zip_members(archive: Path, budget: _Budget) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            if member.flag_bits & 1:
                raise ValueError(
                    f"{archive}: {member.filename!r} is encrypted. Unpack the archive yourself, and give the folder"
                )
            # The decoders of other methods may return gigabytes from one call.
            if member.compress_type not in _PLAIN_METHODS:
                raise ValueError(
                    f"{archive}: {member.filename!r} is compressed by the method {member.compress_type}, which is not"
                    " supported. Unpack the archive yourself, and give the folder"
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
        # Count the bytes of the stream, not of its files, because tarfile also reads headers of any length.
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
            pass  # read to the end, where gzip verifies its checksum


def _no_plain_file(archive: Path, name: str) -> str:
    return f"{archive}: {name!r} is a link, a device or a sparse file, which no model needs, so nothing was unpacked"


class _Member(NamedTuple):
    """A file in an archive, or a folder if `content` is None."""

    name: str
    size: int = 0
    content: IO[bytes] | _Metered | None = None


class _Budget:
    """Counter of the bytes that may still be unpacked from an archive."""

    def __init__(self, archive: Path) -> None:
        size = archive.stat().st_size
        self._archive = archive
        self._allowed = self._left = limits.expanded_bytes(size)

    def spend(self, count: int) -> None:
        """Subtract the number of unpacked bytes. Raise a ValueError if they exceed the limit for the
        archive."""
        self._left -= count
        if self._left < 0:
            raise ValueError(
                f"{self._archive} unpacks to more than {self._allowed:,} bytes, the limit for an archive of its size."
                " It may be a zip bomb, so nothing was unpacked. If you trust it, unpack it, and give the folder"
            )


class _Metered:
    """Stream that subtracts the number of read bytes from the budget of an archive."""

    def __init__(self, read: Callable[[int], bytes], budget: _Budget) -> None:
        self._read = read
        self._budget = budget

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes, and call `_Budget.spend` with the number of read bytes."""
        data = self._read(size)
        self._budget.spend(len(data))
        return data

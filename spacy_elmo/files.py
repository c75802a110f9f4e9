"""Atomic writing: a file or a folder appears complete or not at all, even after a crash. And a lock, so that two
processes never write to the same place.

A new file is first written under a temporary name in the same folder (`.NAME.PROCESS-THREAD.partial`),
because a rename is atomic only within a file system. Then the new file is flushed to disk and renamed, and
the parent folder is flushed. New folders are written in the same way. As with `open`, the umask determines
the permissions, and symbolic links are followed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def check_output_file(path: Path, *, force: bool) -> None:
    """Before the work begins, check that an output file can be written, and does not exist unless `force` is set."""
    _check_kind(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"Cannot write {path}: the folder {path.parent} does not exist")
    if path.exists() and not force:
        raise FileExistsError(f"{path} already exists. To overwrite it, set force (`--force`)")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"Cannot write {path}: you may not write to the folder {path.parent}")


def _check_kind(path: Path) -> None:
    # A rename would replace a device, such as /dev/null.
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is a folder or a device. Give the name of the file to write")


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to. When the `with` block ends without an error, flush the temporary file to disk
    and rename it to `path`. After an OSError, which names `path`, the old file is unchanged.
    """
    path = Path(os.path.realpath(path))
    _check_kind(path)
    with _temporary(_partial(path), path) as partial:
        yield partial
        _flush(partial)
        partial.replace(path)
        _flush_folder(path.parent)


def atomic_write(path: str | Path, content: bytes) -> None:
    """Write bytes to a file atomically; see `atomic_file`."""
    with atomic_file(path) as partial:
        partial.write_bytes(content)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder. When the `with` block ends without an error, rename this folder to `path`.

    An earlier folder at `path` is first renamed to `.NAME.PROCESS-THREAD.old`, and is deleted after the new
    folder has been renamed to `path`. If the process is killed between the two renames, the earlier folder
    keeps the `.old` name. After an OSError, which names `path`, the earlier folder is unchanged.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{path} is a file. Give a folder to write to")
    with _temporary(_partial(path), path) as partial:
        partial.mkdir()
        yield partial
        _flush_tree(partial)
        old = partial.with_suffix(".old")
        if path.exists():
            path.replace(old)
        try:
            partial.replace(path)
        except BaseException:
            if old.exists():
                old.replace(path)
            raise
        _flush_folder(path.parent)
        _remove(old)


@contextmanager
def all_or_nothing(folder: str | Path, names: Sequence[str], *, force: bool) -> Iterator[Path]:
    """Yield a temporary folder. When the `with` block ends without an error, move its files to `folder`, which is
    created if necessary.

    Args:
        names: the names of all files that the `with` block can write. Files in `folder` with other names stay.
        force: replace earlier files with these names, and remove those without a new file. For example, an old
            softmax does not belong to new weights.
    """
    folder = Path(folder)
    present = [name for name in names if (folder / name).exists()]
    if present and not force:
        raise FileExistsError(
            f"{folder} already contains {', '.join(present)}. To overwrite, set force (`--force`)"
        )
    folder.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".") as temporary:
        yield Path(temporary)
        for name in present:
            (folder / name).unlink()
        for new in Path(temporary).iterdir():
            new.replace(folder / new.name)


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold a lock for an output folder or output file inside the `with` block.

    The operating system releases the lock when the process ends, even if the process is killed. After a kill,
    the lock file remains, but locks nothing. If another process holds the lock, a BlockingIOError names it.
    """
    from filelock import FileLock, Timeout

    path = Path(os.path.realpath(path))
    file = path / ".lock" if path.is_dir() else path.with_name(f".{path.name}.lock")
    file_lock = FileLock(file, blocking=False)
    try:
        file_lock.acquire()
    except Timeout as error:
        raise BlockingIOError(
            f"Another run is writing to {path}: {file.read_text()}. Wait until it has ended, or write to another path"
        ) from error
    try:
        # On a full disk, the name of the process cannot be written. The lock works without it.
        with contextlib.suppress(OSError):
            file.write_text(f"process {os.getpid()} on {socket.gethostname()}")
        yield
    finally:
        # Remove the file before releasing the lock. Afterwards, it could be the file of the next run.
        with contextlib.suppress(OSError):
            file.unlink()
        file_lock.release()


@contextmanager
def locked_folder(out: Path) -> Iterator[None]:
    """Create an output folder if necessary, and hold a lock for the folder inside the `with` block.

    If the folder is empty at the end, because the run could not start, the folder is removed.
    """
    out.mkdir(parents=True, exist_ok=True)
    try:
        with lock(out):
            yield
    finally:
        with contextlib.suppress(OSError):
            out.rmdir()


def read_json_object(path: Path) -> dict[str, Any]:
    """Read a JSON file that contains one object. An error names the file."""
    try:
        value = json.loads(path.read_text(encoding="utf8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must contain a JSON object, but contains {value!r:.100}")
    return value


def remove_folder(path: Path) -> None:
    """Remove a folder, which first gets a temporary name, so that a kill leaves no incomplete folder at `path`."""
    removed = _partial(path)
    _remove(removed)
    path.replace(removed)
    _remove(removed)


def remove_partial(folder: Path, name: str | None = None) -> None:
    """Remove the temporary files and folders for `name` in a folder (None: for all names), even if a running process
    is writing to them."""
    remains = re.compile(r".*" if name is None else rf"\.{re.escape(name)}\.[\d-]+\.partial")
    for path in folder.glob(".*.partial"):
        if remains.fullmatch(path.name):
            _remove(path)


def _flush_folder(folder: Path) -> None:
    """Flush a folder's list of files to disk, so that a crash of the machine cannot undo a rename."""
    # Windows and some file systems cannot flush a folder. The files are complete even then.
    with contextlib.suppress(OSError):
        _flush(folder)


def _partial(path: Path) -> Path:
    # The name includes the thread, because two threads may write the same file. It must stay below 255 bytes.
    writer = f"{os.getpid()}-{threading.get_native_id()}"
    return path.with_name(f".{path.name}.{writer}.partial")


@contextmanager
def _temporary(partial: Path, path: Path) -> Iterator[Path]:
    """Yield the temporary path `partial`, and remove it at the end. An OSError names the final path `path` instead."""
    _remove(partial)  # an earlier process with the same number may have left it
    try:
        yield partial
    except ChildProcessError:  # it is about a process, not about the path
        raise
    except OSError as error:
        if error.errno is None:  # an error of a library, such as NumPy, which names no file
            raise OSError(f"Cannot write {path} ({error})") from error
        # An error about a full disk has no file name.
        if str(error.filename) in ("None", str(partial)):
            error.filename = str(path)
        raise
    finally:
        _remove(partial)


def _flush(path: Path) -> None:
    # Windows can only flush files that are open for writing.
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            _flush(path)
        elif path.is_dir():
            _flush_folder(path)
    _flush_folder(folder)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

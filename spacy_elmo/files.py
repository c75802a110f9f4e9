"""Atomic writes: a file, a folder or a set of files appears whole or not at all, even after a crash.

New content is written under a hidden name in the same folder (`.NAME.PROCESS-THREAD.partial`), because a rename is one
step only within a file system. It is flushed to disk, renamed, and then the folder is flushed. As with `open`, the
permissions follow the umask, and a symbolic link is followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def check_output_file(path: Path, *, force: bool) -> None:
    """Check before the work begins that a file can be written, over an existing one only with `force`.

    Raises:
        OSError: it is a folder, its folder does not exist, or the file exists and `force` is not set.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of the file to write")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}, the folder of {path.name}, does not exist")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; to overwrite it, set force (`--force`)")


@contextmanager
def atomic_file(
    path: str | Path, *, previous: Path | None = None, durable: bool = True
) -> Iterator[Path]:
    """Yield a path to write a file to, and rename it to `path` when the block ends without an error.

    A device or a pipe, such as /dev/stdout, is written to directly.

    Args:
        previous: where the file that is replaced is kept, in the same folder; None: it is not kept.
        durable: flush to disk, so that a crash of the machine cannot leave an incomplete file under the final name.
            Without it the file is whole only as long as the machine runs.

    Raises:
        OSError: the file cannot be written (it names `path`); an earlier file at `path` is unchanged.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        yield path
        return
    path = Path(os.path.realpath(path))
    with _temporary(_partial(path), path) as partial:
        yield partial
        if durable:
            _flush(partial)
        _rename(partial, path, previous, durable=durable)


def atomic_write(path: str | Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file; see `atomic_file`."""
    with atomic_file(path, durable=durable) as partial:
        partial.write_bytes(content)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a new folder to write to, and rename it to `path` when the block ends without an error.

    An earlier folder at `path` is removed after the new one has replaced it. A process that is killed between the two
    renames leaves it as `.NAME.PROCESS-THREAD.old`.

    Raises:
        OSError: the folder cannot be written (it names `path`), its parent is missing, or `path` is a file; what was at
            `path` is unchanged.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    with _temporary(_partial(path), path) as partial:
        partial.mkdir()
        yield partial
        _flush_tree(partial)
        replaced = partial.with_suffix(".old")
        _rename(partial, path, replaced)
        _remove(replaced)


@contextmanager
def all_or_nothing(folder: str | Path, names: Sequence[str], *, force: bool) -> Iterator[Path]:
    """Yield a temporary folder, and move its files to `folder` when the block ends without an error.

    Args:
        folder: is created if its parent exists. Its other files are kept.
        names: all file names that a set of this kind may have. Earlier files of these names are replaced, or removed if
            there is no new one: an old softmax beside new weights would be taken for theirs. Old files are removed in
            reverse order of `names`, new ones appear in order: a reader that requires the last name never sees a mixed
            set.
        force: replace earlier files.

    Raises:
        OSError: `folder` is a file, its parent is missing, it cannot be written, or it contains one of the files and
            `force` is false. Its files are unchanged.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; give a folder to export to")
    if not folder.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {folder.parent}, in which {folder.name} is to be made, does not exist"
        )
    if present := [name for name in names if (folder / name).exists()]:
        if not force:
            raise FileExistsError(
                f"{folder} has {', '.join(present)}; to overwrite them, set force (`--force`)"
            )
    if not folder.exists():
        with atomic_folder(folder) as new:
            yield new
        return
    folder = Path(os.path.realpath(folder))
    # Inside the folder, not beside it: the folder may be the root of a file system.
    with _temporary(_partial(folder / folder.name), folder) as partial:
        new, old = partial / "new", partial / "old"
        for part in (partial, new, old):
            part.mkdir()
        yield new
        _flush_tree(new)
        _exchange(folder, names, new, old)
        flush_folder(folder)


def remove_folder(path: Path) -> None:
    """Remove a folder. It is first renamed to its `.partial` name, so a killed process leaves it whole or under that
    name."""
    removed = _partial(path)
    _remove(removed)
    path.replace(removed)
    _remove(removed)


def remove_partial(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes have left in a folder. It also removes what a running process is writing there.

    Args:
        name: the target whose remains are removed; None: those of all targets.
    """
    remains = re.compile(r".*" if name is None else rf"\.{re.escape(name)}\.[\d-]+\.partial")
    for path in folder.glob(".*.partial"):
        if remains.fullmatch(path.name):
            _remove(path)


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, so that a crash of the machine cannot undo a rename."""
    # Some file systems, and Windows, cannot flush a folder. The files are whole and in place all the same.
    with contextlib.suppress(OSError):
        _flush(folder)


def _partial(path: Path) -> Path:
    # The thread too: two threads may write the same file. Both numbers stay short, since a name has at most 255 bytes.
    writer = f"{os.getpid()}-{threading.get_native_id()}"
    return path.with_name(f".{path.name}.{writer}.partial")


@contextmanager
def _temporary(partial: Path, path: Path) -> Iterator[Path]:
    """Yield `partial`, which is removed in the end; an error in writing it names `path`."""
    _remove(partial)  # of an earlier process with the same number
    try:
        yield partial
    except OSError as error:
        if error.errno is None:  # of a library, such as NumPy, which names nothing
            raise OSError(f"{path} cannot be written ({error})") from error
        # A full disk is reported without any name.
        if str(error.filename) in ("None", str(partial)):
            error.filename = str(path)
        raise
    finally:
        _remove(partial)


def _rename(partial: Path, path: Path, previous: Path | None, *, durable: bool = True) -> None:
    """Move the old file to `previous`, then rename `partial` to `path`; on failure, restore the old file."""
    kept = previous if os.path.lexists(path) else None
    if kept is not None:
        path.replace(kept)
    try:
        partial.replace(path)
    except BaseException:
        if kept is not None:
            kept.replace(path)
        raise
    if durable:
        flush_folder(path.parent)


def _exchange(folder: Path, names: Sequence[str], new: Path, old: Path) -> None:
    """Move the files of these names from `folder` to `old` and from `new` to `folder`; on failure, move them back."""
    moves = [(folder / name, old / name) for name in reversed(names)]
    moves += [(new / name, folder / name) for name in names]
    moved: list[tuple[Path, Path]] = []
    try:
        for source, target in moves:
            if os.path.lexists(source):
                source.replace(target)
                moved.append((source, target))
    except BaseException:
        for source, target in reversed(moved):
            target.replace(source)
        raise


def _flush(path: Path) -> None:
    # Windows flushes only files that are open for writing.
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
            flush_folder(path)
    flush_folder(folder)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

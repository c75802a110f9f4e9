"""Lock for an output file or folder, so that two processes never write to it at the same time."""

from __future__ import annotations

import contextlib
import datetime
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

LOCK = ".lock"
"""Name of the lock file inside a locked folder. If NAME is a file, or a folder that does not exist yet, the
lock file is `.NAME.lock` in the parent folder."""


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold a lock for an output folder or output file inside the `with` block.

    The operating system releases the lock when the process ends, even if the process is killed. After a kill,
    the lock file remains, but the remaining file locks nothing.

    Args:
        path: the folder or file that this process writes.

    Raises:
        BlockingIOError: another process holds the lock. The message names this process.
        OSError: the lock file cannot be written.
    """
    path = Path(os.path.realpath(path))
    lock_file = path / LOCK if path.is_dir() else path.with_name(f".{path.name}{LOCK}")
    file_lock = FileLock(lock_file, blocking=False)
    try:
        file_lock.acquire()
    except Timeout as error:
        raise BlockingIOError(
            f"Another run is writing to {path}: {_holder(lock_file)}. Wait until it has ended, or write to another path"
        ) from error
    try:
        # On a full disk, the name of the process cannot be written. The lock works without it.
        with contextlib.suppress(OSError):
            lock_file.write_text(_this_process(), encoding="utf8")
        yield
    finally:
        # Remove the file before releasing the lock. Afterwards, it could be the file of the next run.
        with contextlib.suppress(OSError):
            lock_file.unlink()
        file_lock.release()


@contextmanager
def locked_folder(out: Path) -> Iterator[None]:
    """Create an output folder if necessary, and hold a lock for the folder inside the `with` block.

    If the folder is empty at the end, the folder is removed.

    Raises:
        BlockingIOError: another process holds the lock.
        OSError: the folder cannot be created.
    """
    out.mkdir(parents=True, exist_ok=True)
    try:
        with lock(out):
            yield
    finally:
        # If the run could not start, the folder is empty: remove it.
        with contextlib.suppress(OSError):
            out.rmdir()


def _this_process() -> str:
    since = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
    return f"process {os.getpid()} on {socket.gethostname()}, since {since}"


def _holder(lock_file: Path) -> str:
    try:
        return lock_file.read_text(encoding="utf8").strip() or "a process that has just started"
    except OSError:
        return "a process that is just ending"

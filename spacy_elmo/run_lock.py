"""The lock of a run: two processes never write to the same folder or file at the same time."""

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
"""Name of the lock file in a folder. A file, and a folder that does not exist yet, have `.NAME.lock` beside them."""


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the lock of a run's output inside the `with` block.

    The operating system releases the lock when the process ends, however it ends. The lock file that a killed process
    leaves therefore locks nothing, and the next run uses it.

    Args:
        path: the folder or file that the run writes.

    Raises:
        BlockingIOError: another run holds the lock; the message names its process.
        OSError: the lock file cannot be written.
    """
    path = Path(os.path.realpath(path))
    lock_file = path / LOCK if path.is_dir() else path.with_name(f".{path.name}{LOCK}")
    file_lock = FileLock(lock_file, blocking=False)
    try:
        file_lock.acquire()
    except Timeout as error:
        raise BlockingIOError(
            f"Another run is writing to {path}: {_holder(lock_file)}. Wait for its end, or choose another place"
        ) from error
    try:
        # On a full disk nobody can read who holds the lock, but it is held all the same.
        with contextlib.suppress(OSError):
            lock_file.write_text(_this_process(), encoding="utf8")
        yield
    finally:
        # While the lock is held: afterwards, it could be the file of the next run.
        with contextlib.suppress(OSError):
            lock_file.unlink()
        file_lock.release()


@contextmanager
def locked_folder(out: Path) -> Iterator[None]:
    """Make the folder of a run, if it does not exist, and hold its lock inside the `with` block.

    Raises:
        BlockingIOError: another run holds it.
        OSError: the folder cannot be made.
    """
    out.mkdir(parents=True, exist_ok=True)
    try:
        with lock(out):
            yield
    finally:
        # Nothing is left of a run that could not start.
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

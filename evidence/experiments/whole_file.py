"""A file or folder that appears whole or not at all."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a place beside `path` to write to; it takes the name of `path` when the block ends without an error.

    Two processes that make the same file do not meet. A folder that is there already is replaced. SIGTERM in the block
    ends the process as an error would, so that it leaves nothing, either.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with _sigterm_as_exit():
        try:
            yield partial
            if path.is_dir():
                shutil.rmtree(path)
            partial.replace(path)
        finally:
            _remove(partial)


def remove_abandoned(folder: Path) -> None:
    """Remove what processes that were killed in the middle of `whole` have left anywhere under a folder."""
    for partial in list(folder.rglob(".*.partial")):
        *_, process, _ = partial.name.split(".")
        if process.isdecimal() and not _alive(int(process)):
            _remove(partial)


@contextmanager
def _sigterm_as_exit() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    # A handler of the program's own stays. Only a main thread may set one, and only there would it run.
    ours = before is signal.SIG_DFL and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, before)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        pass
    return True


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)

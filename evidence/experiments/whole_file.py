"""A file or folder that appears whole or not at all."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spacy_elmo.files import atomic_file, atomic_folder


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path to write a file to; see `atomic_file`. The folder of `path` is created, and SIGTERM in the block
    raises an error, so that no partial file is left then either."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _sigterm_as_exit(), atomic_file(path) as partial:
        yield partial


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to write to; see `atomic_folder` and `whole_file`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _sigterm_as_exit(), atomic_folder(path) as partial:
        yield partial


def remove_abandoned(folder: Path) -> None:
    """Remove the partial files and folders that killed processes have left anywhere under a folder."""
    for partial in list(folder.rglob(".*.partial")):
        process = partial.name.split(".")[-2].partition("-")[0]
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

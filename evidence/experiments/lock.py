"""A lock that is also held by the processes that are started under it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock together with every process that inherits it; it is free when the last of them has ended.

    Args:
        path: the file of the lock, created if it does not exist. It is never removed, and alone locks nothing.

    Raises:
        BlockingIOError: another process holds it, perhaps one that was left over when its parent was killed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BlockingIOError(
                f"{path}: locked; another `run` of this size is at work, or a process that it left behind when it was"
                " killed. Wait for it, or end it"
            ) from error
        os.set_inheritable(file.fileno(), True)
        yield

"""One at a time: a lock that the processes which are started under it hold, too."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock, together with every process that inherits it; it falls when the last of them has ended.

    Args:
        path: a file for it, made if need be. It stays, and says nothing by being there.

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

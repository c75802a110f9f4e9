"""Files on disk: their contents, and a simulated full disk."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def tree(path: Path) -> dict[str, bytes]:
    """Return the bytes of every file under a path, by name."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {file.relative_to(path.parent).as_posix(): file.read_bytes() for file in files}


@contextmanager
def limited_file_size(size: int) -> Iterator[None]:
    """Let every write beyond `size` bytes of a file fail with an OSError, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

"""Files on disk."""

from pathlib import Path


def tree(path: Path) -> dict[str, bytes]:
    """Return the bytes of every file under a path, by name."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {file.relative_to(path.parent).as_posix(): file.read_bytes() for file in files}

"""What a run has written."""

from pathlib import Path


def tree(path: Path) -> dict[str, bytes]:
    """Every file under a path, by its name, with its bytes."""
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return {file.relative_to(path.parent).as_posix(): file.read_bytes() for file in files}

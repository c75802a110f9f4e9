"""Results that a command writes: the check of figure files before its work begins, and JSON at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import srsly

from ..files import atomic_file, check_output_file


def check_figure_files(paths: list[Path] | None) -> list[Path]:
    """Check that the files of `--out` can be written, and return them.

    Raises:
        OSError: see `check_output_file`.
        ValueError: a file has another suffix, or the drawing library is not installed.
    """
    files = paths or []
    for path in files:
        if path.suffix not in (".html", ".json", ".png"):
            raise ValueError(f"--out {path}: the name must end in .png, .html or .json")
        check_output_file(path, force=True)
    if any(path.suffix != ".json" for path in files):
        try:
            from ..analysis import figures  # noqa: F401
        except ImportError as error:
            raise ValueError(
                f"To draw, --out needs `pip install spacy-elmo[figures]` ({error})"
            ) from error
    return files


def write_json(path: Path, results: Any) -> None:
    """Write results to a JSON file, atomically.

    Raises:
        OSError: the file cannot be written.
    """
    with atomic_file(path) as partial:
        srsly.write_json(partial, results)

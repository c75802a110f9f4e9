"""Files that a command writes: checks before its work begins, and JSON results at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import srsly

from ..files import atomic_file


def check_output_file(path: Path, argument: str, *, force: bool) -> None:
    """Check that a file can be written.

    Args:
        argument: name of the argument in the help.
        force: an existing file may be overwritten.

    Raises:
        OSError: it is a folder, its folder does not exist, or the file exists and `force` is not set.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; {argument} is the file to write")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}, the folder of {argument}, does not exist")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; --force overwrites it")


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
        check_output_file(path, "--out", force=True)
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

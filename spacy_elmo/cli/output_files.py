"""Output files of the commands: check them before the work begins, and write JSON results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import srsly

from ..files import atomic_file


def check_output_file(path: Path, argument: str, *, force: bool) -> None:
    """Check that a file can be written.

    Args:
        argument: name of the command's argument, for the messages.
        force: whether an existing file may be overwritten.

    Raises:
        OSError: the path is a folder, its parent folder does not exist, or the file exists and `force` is not set.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{argument} must be a file, but {path} is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"Cannot write {argument} {path}: the folder {path.parent} does not exist"
        )
    if path.exists() and not force:
        raise FileExistsError(f"{path} already exists. Use --force to overwrite it")


def check_figure_files(paths: list[Path] | None) -> list[Path]:
    """Check that the files of `--out` can be written, and return them.

    Raises:
        OSError: see `check_output_file`.
        ValueError: a suffix is not supported, or the drawing library is not installed.
    """
    files = paths or []
    for path in files:
        if path.suffix not in (".html", ".json", ".png"):
            raise ValueError(f"--out {path}: the file name must end in .png, .html or .json")
        check_output_file(path, "--out", force=True)
    if any(path.suffix != ".json" for path in files):
        try:
            from ..analysis import figures  # noqa: F401
        except ImportError as error:
            raise ValueError(
                f"--out needs a library for figures: pip install spacy-elmo[figures] ({error})"
            ) from error
    return files


def write_json(path: Path, results: Any) -> None:
    """Write results to a JSON file, atomically.

    Raises:
        OSError: the file cannot be written.
    """
    with atomic_file(path) as partial:
        srsly.write_json(partial, results)

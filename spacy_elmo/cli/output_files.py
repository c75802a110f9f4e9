"""Output files of commands: a check of the paths of charts, and a function that writes JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..files import atomic_file, check_output_file


def check_figure_files(paths: list[Path] | None) -> list[Path]:
    """Check that the files of the option `--out` can be written, and return their paths.

    Raises:
        OSError: a file cannot be written.
        ValueError: a file name does not end in .png, .html or .json; or a chart needs a library that is not
            installed.
    """
    files = paths or []
    for path in files:
        if path.suffix not in (".html", ".json", ".png"):
            raise ValueError(f"--out {path}: the file name must end in .png, .html or .json")
        check_output_file(path, force=True)
    if any(path.suffix != ".json" for path in files):
        try:
            from ..lab import figures  # noqa: F401
        except ImportError as error:
            raise ValueError(
                f'--out needs a library for figures: pip install "spacy-elmo[figures]" ({error})'
            ) from error
    return files


def write_json(path: Path, results: Any) -> None:
    """Write results to a JSON file, atomically.

    Raises:
        OSError: the file cannot be written.
    """
    # Not with srsly, which cannot write infinity: the perplexity of a run that has diverged.
    content = json.dumps(results, indent=2, ensure_ascii=False)
    with atomic_file(path) as partial:
        partial.write_text(content, encoding="utf8")

"""Output files of commands: a check of their paths, and a function that writes JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..files import atomic_file, check_output_file


def check_suffix(path: Path | None, *suffixes: str) -> None:
    """Check that the file of the option `--out` can be written and has one of the suffixes.

    Raises:
        OSError: the file cannot be written.
        ValueError: the file has another suffix.
    """
    if path is None:
        return
    if path.suffix not in suffixes:
        raise ValueError(f"--out {path}: the file name must end in {' or '.join(suffixes)}")
    check_output_file(path, force=True)


def write_json(path: Path, results: Any) -> None:
    """Write results to a JSON file, atomically.

    Raises:
        OSError: the file cannot be written.
    """
    # Not with srsly, which cannot write infinity: the perplexity of a run that has diverged.
    content = json.dumps(results, indent=2, ensure_ascii=False)
    with atomic_file(path) as partial:
        partial.write_text(content, encoding="utf8")

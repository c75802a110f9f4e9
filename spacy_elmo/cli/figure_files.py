"""The option `--out` of the commands that draw."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .out_file import check_out_file

OutOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--out", "-o", help="Picture (.png), page (.html) or numbers (.json); may be given again"
    ),
]


def check_figure_files(out: list[Path] | None) -> list[Path]:
    """The files to write, once it is known that they can be.

    Raises:
        OSError: as of `check_out_file`.
        ValueError: a file of another kind; or what draws is not installed.
    """
    files = out or []
    for path in files:
        if path.suffix not in (".html", ".json", ".png"):
            raise ValueError(f"--out {path}: its name must end in .png, .html or .json")
        check_out_file(path, "--out", force=True)
    if any(path.suffix != ".json" for path in files):
        try:
            from ..analysis import figures  # noqa: F401
        except ImportError as error:
            raise ValueError(
                f"To draw, --out needs `pip install spacy-elmo[figures]` ({error})"
            ) from error
    return files

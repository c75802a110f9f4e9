"""Output of the commands: messages, errors, tables, progress bars and JSON files."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from wasabi import Printer

if TYPE_CHECKING:
    from tqdm import tqdm

_EXTRAS = {
    "flask": "explore", "h5py": "h5", "onnx": "onnx", "pyarrow": "parquet", "sklearn": "probe",
    "tensorflow": "tensorflow", "usearch": "search", "vl_convert": "figures", "waitress": "explore",
}  # fmt: skip
"""Extra of this package that installs a library."""

LOG_SECONDS = 30
"""Seconds between two lines of a progress bar that is not on a terminal, such as in a log file."""


class _Printer(Printer):
    """Printer of wasabi that neither folds messages, because commands in them would be damaged by that, nor prints
    the control characters of names and cards, because they could manipulate the terminal."""

    def text(self, title: Any = "", *args: Any, **kwargs: Any) -> None:
        mark = super().text("", *args, **{**kwargs, "no_print": True})
        print(f"{mark} {printable(title)}".strip(), flush=True)

    def table(self, data: Any, **kwargs: Any) -> None:
        kwargs = {"divider": "header" in kwargs, "max_col": 100, **kwargs}
        kwargs["header"] = tuple(map(printable, kwargs.get("header", ())))
        super().table([tuple(map(printable, row)) for row in data], **kwargs)


msg = _Printer()


def printable(text: Any) -> str:
    """Escape the control characters in a text, except line breaks."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode()
        for c in str(text)
    )


@contextmanager
def report_errors() -> Iterator[None]:
    """Print the message of a ValueError (invalid input), an OSError (such as a missing file) or a missing library
    of an extra, and exit with code 1. Any other exception is a bug, so its traceback is shown.

    Print warnings to standard error, without their place in the code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: typer.echo(printable(message), err=True)
            yield
    except (ValueError, OSError) as error:
        msg.fail(re.sub(r"^\[Errno \d+\] ", "", str(error).strip()))
        raise typer.Exit(1) from error
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        extra = _EXTRAS[error.name]
        msg.fail(f'This needs the library {error.name}: pip install "spacy-elmo[{extra}]"')
        raise typer.Exit(1) from error


def show_command(*words: object) -> None:
    """Print a command of spaCy on a line of its own, with quotes where the shell needs them."""
    import shlex

    typer.echo(f"  {shlex.join(['python', '-m', 'spacy', *map(str, words)])}")


def show_file(path: Path) -> None:
    """Print the name and the size of a file that was written."""
    msg.good(f"{path}: {file_size(path.stat().st_size)}")


def file_size(size: int) -> str:
    """Format a number of bytes, in MB for 1 MB or more, in kB otherwise."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


def check_out(path: Path | None, *suffixes: str) -> None:
    """Check, before the work begins, that the file of the option `--out` can be written and has one of the
    suffixes."""
    from ..files import check_output_file

    if path is None:
        return
    if path.suffix not in suffixes:
        raise ValueError(f"--out {path}: the file name must end in {' or '.join(suffixes)}")
    check_output_file(path, force=True)


def write_json(path: Path | None, results: Any) -> None:
    """Write results to the JSON file of the option `--out`, if it was given."""
    from ..files import atomic_write

    if path is not None:
        # Not with srsly, which cannot write infinity: the perplexity of a run that has diverged.
        atomic_write(path, json.dumps(results, indent=2, ensure_ascii=False).encode())
        msg.good(f"Saved: {path}")


def progress_bar(unit: str, total: int | None, *, shown: bool = True) -> tqdm:
    """Return a progress bar. If standard error is not a terminal, it is shown every half minute.

    Args:
        unit: plural noun for the counted units, such as "sentences"; "B" for bytes.
        total: final count; None: unknown.
    """
    from tqdm import tqdm

    wait = 0 if sys.stderr.isatty() else LOG_SECONDS
    return tqdm(
        total=total,
        unit=unit if unit == "B" else f" {unit}",
        unit_scale=unit == "B",
        disable=not shown,
        dynamic_ncols=True,
        delay=wait,
        mininterval=max(wait, 0.1),
        maxinterval=max(wait, 10),
    )


@contextmanager
def reading_bar(files: Iterable[Path], *, shown: bool = True) -> Iterator[tqdm]:
    """Yield a progress bar that advances while text files are read inside the `with` block."""
    from ..text.reading import is_compressed, observed_reading

    files = list(files)
    # The size of a text is unknown if it is compressed.
    total = None if any(map(is_compressed, files)) else sum(file.stat().st_size for file in files)
    with progress_bar("B", total, shown=shown) as bar, observed_reading(bar.update):
        yield bar

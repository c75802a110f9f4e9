"""Progress bars: on a terminal, with a rate and the time left; in a pipe or a log, nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm import tqdm


def progress_bar(unit: str, *, total: int | None = None, quiet: bool = False) -> tqdm:
    """Return a bar on standard error, which shows nothing without a terminal or if `quiet`.

    Args:
        unit: name of the counted things, in the plural; "B" for bytes.
        total: their number, if it is known.
    """
    from tqdm import tqdm

    return tqdm(
        unit=unit if unit == "B" else f" {unit}",
        unit_scale=True,
        total=total,
        disable=quiet or None,
        dynamic_ncols=True,
    )


@contextmanager
def reading_bar(files: Callable[[], Iterable[Path]], *, quiet: bool = False) -> Iterator[tqdm]:
    """Yield a bar that advances as the text of files is read within the block.

    Args:
        files: function that returns the files, called if the bar is shown. If none is compressed, the bar shows the
            time left.
    """
    if quiet or not sys.stderr.isatty():
        with progress_bar("B", quiet=True) as bar:
            yield bar
        return
    from ..text.progress import observed_reading

    with progress_bar("B", total=_size(files())) as bar, observed_reading(bar.update):
        yield bar


def _size(files: Iterable[Path]) -> int | None:
    """Return the size of text files in bytes; None if the text of one is compressed, so that its size is not known."""
    size = 0
    for file in files:
        if file.suffix in (".gz", ".xz", ".zst"):
            return None
        size += file.stat().st_size
    return size

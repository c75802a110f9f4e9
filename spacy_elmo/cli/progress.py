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
        # Few things are counted as they are: 2, not 2.00.
        unit_scale=unit == "B" or total is None or total > 1000,
        total=total,
        disable=quiet or None,
        dynamic_ncols=True,
    )


@contextmanager
def stage_bar(*stages: str, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Yield a function that ends the present stage of a task, such as "Reading", whose name is beside the bar."""
    with progress_bar("stages", total=len(stages), quiet=quiet) as bar:
        names = iter((*stages[1:], "Done"))
        bar.set_description_str(stages[0])

        def end_stage() -> None:
            bar.set_description_str(next(names), refresh=False)
            bar.update()

        yield end_stage


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

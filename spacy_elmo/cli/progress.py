"""Progress bars, shown only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm import tqdm


def progress_bar(unit: str, *, total: int | None = None, quiet: bool = False) -> tqdm:
    """Return a progress bar. It shows nothing if `quiet` is set or standard error is not a terminal.

    Args:
        unit: plural noun for what the bar counts; "B" for bytes.
        total: final count, if it is known.
    """
    from tqdm import tqdm

    return tqdm(
        unit=unit if unit == "B" else f" {unit}",
        # A scaled number has decimals. A small count is shown without: 2, not 2.00.
        unit_scale=unit == "B" or total is None or total > 1000,
        total=total,
        disable=quiet or None,
        dynamic_ncols=True,
    )


@contextmanager
def stage_bar(*stages: str, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Show a bar with the name of the current stage, and yield a function that ends this stage.

    Args:
        stages: names of the stages, such as "Reading".
    """
    with progress_bar("stages", total=len(stages), quiet=quiet) as bar:
        names = iter((*stages[1:], "Done"))
        bar.set_description_str(stages[0])

        def end_stage() -> None:
            bar.set_description_str(next(names), refresh=False)
            bar.update()

        yield end_stage


@contextmanager
def reading_bar(files: Callable[[], Iterable[Path]], *, quiet: bool = False) -> Iterator[tqdm]:
    """Show a bar that advances while text files are read inside the `with` block, and yield it.

    Args:
        files: function that returns the files; only called if the bar is shown. The bar shows the time left unless a
            file is compressed.
    """
    if quiet or not sys.stderr.isatty():
        with progress_bar("B", quiet=True) as bar:
            yield bar
        return
    from ..text.progress import observed_reading

    with progress_bar("B", total=_size(files())) as bar, observed_reading(bar.update):
        yield bar


def _size(files: Iterable[Path]) -> int | None:
    """Return the size of text files in bytes, or None if a compressed file hides the size of its text."""
    size = 0
    for file in files:
        if file.suffix in (".gz", ".xz", ".zst"):
            return None
        size += file.stat().st_size
    return size

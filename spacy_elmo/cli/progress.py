"""Progress bars of commands, which are shown only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm import tqdm


def progress_bar(unit: str, *, total: int | None = None, quiet: bool = False) -> tqdm:
    """Return a progress bar. The bar is hidden if `quiet` is set, or if standard error is not a terminal.

    Args:
        unit: plural noun for the counted units, such as "sentences"; "B" for bytes.
        total: final count; None: unknown.
    """
    from tqdm import tqdm

    return tqdm(
        unit=unit if unit == "B" else f" {unit}",
        # A scaled number has decimals. A small count is shown without decimals: 2, not 2.00.
        unit_scale=unit == "B" or total is None or total > 1000,
        total=total,
        disable=quiet or None,
        dynamic_ncols=True,
    )


@contextmanager
def stage_bar(*stages: str, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Show a progress bar with the current stage of a command. Yield a function to call at the end of each
    stage.

    Args:
        stages: names of the stages in order, such as "Reading".
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
    """Yield a progress bar that advances while text files are read inside the `with` block.

    The bar shows the remaining time, unless a file is compressed.

    Args:
        files: function that returns the files. The function is called only if the bar is shown.
    """
    if quiet or not sys.stderr.isatty():
        with progress_bar("B", quiet=True) as bar:
            yield bar
        return
    from ..text.files import observed_reading

    with progress_bar("B", total=_size(files())) as bar, observed_reading(bar.update):
        yield bar


def _size(files: Iterable[Path]) -> int | None:
    """Return the total size of text files in bytes. Return None if a file is compressed, because the size of
    its text is then unknown."""
    from ..text.files import is_compressed

    size = 0
    for file in files:
        if is_compressed(file):
            return None
        size += file.stat().st_size
    return size

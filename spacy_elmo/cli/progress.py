"""Progress bars: on a terminal, with a rate and the time left; in a pipe or a log, nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm

T = TypeVar("T")


def progress_bar(unit: str, *, total: int | None = None, quiet: bool = False) -> tqdm:
    """Return a bar on standard error; without a terminal, or if `quiet`, it shows nothing.

    Args:
        unit: name of the counted things, in the plural.
        total: their number, if it is known.
    """
    from tqdm import tqdm

    return tqdm(
        unit=f" {unit}", unit_scale=True, total=total, disable=quiet or None, dynamic_ncols=True
    )


def progress(
    items: Iterable[T], unit: str, *, total: int | None = None, quiet: bool = False
) -> Iterator[T]:
    """Yield the items, and show a bar that counts them; see `progress_bar`."""
    with progress_bar(unit, total=total, quiet=quiet) as bar:
        for item in items:
            yield item
            bar.update()


def is_shown(*, quiet: bool = False) -> bool:
    """Return True if bars are shown, so that it is worth counting the items first."""
    return sys.stderr.isatty() and not quiet

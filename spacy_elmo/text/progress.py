"""Callback of the corpus readers, which tells a progress bar how many bytes of text have been read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_observer: ContextVar[Callable[[int], object] | None] = ContextVar("observer", default=None)


@contextmanager
def observed_reading(observer: Callable[[int], object]) -> Iterator[None]:
    """Inside the `with` block, let the corpus readers of this package report their progress to `observer`.

    `observer` is stored in a context variable, because the readers are called many levels below the code that
    shows a progress bar. Readers in other threads do not call `observer`.

    Args:
        observer: function that takes the number of decompressed bytes since its previous call.
    """
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def reading_observer() -> Callable[[int], object] | None:
    """Return the `observer` of the surrounding `observed_reading` block. None if there is no such block."""
    return _observer.get()

"""Observation of how much text has been read, for progress bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_observer: ContextVar[Callable[[int], object] | None] = ContextVar("observer", default=None)


@contextmanager
def observed_reading(observer: Callable[[int], object]) -> Iterator[None]:
    """Call `observer` with a number of decompressed bytes whenever a reader of this package has read them.

    The readers are generators far below the code that shows a bar, so the observer is not an argument of each layer
    between them. It is called in the context (thread) of the `with` block only.
    """
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def reading_observer() -> Callable[[int], object] | None:
    """Return the observer of the present context, if there is one."""
    return _observer.get()

"""Notification of progress bars about the amount of text read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_observer: ContextVar[Callable[[int], object] | None] = ContextVar("observer", default=None)


@contextmanager
def observed_reading(observer: Callable[[int], object]) -> Iterator[None]:
    """Call `observer` with the number of decompressed bytes whenever a reader of this package has read some.

    The observer is a context variable, because the readers are many calls below the code that shows a bar. It is only
    called in the context (thread) of the `with` block.
    """
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def reading_observer() -> Callable[[int], object] | None:
    """Return the observer of the current context, or None."""
    return _observer.get()

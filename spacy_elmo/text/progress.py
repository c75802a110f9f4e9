"""Notification of progress bars about the number of bytes of text that have been read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_observer: ContextVar[Callable[[int], object] | None] = ContextVar("observer", default=None)


@contextmanager
def observed_reading(observer: Callable[[int], object]) -> Iterator[None]:
    """Inside the `with` block, the corpus readers of this package call `observer` when they have read text.

    `observer` is stored in a context variable, because many function calls lie between the progress bar and
    the readers. Readers in another context (thread) do not call `observer`.

    Args:
        observer: function that takes the number of decompressed bytes since the previous call.
    """
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def reading_observer() -> Callable[[int], object] | None:
    """Return the `observer` of the surrounding `observed_reading` block. None if there is no such block."""
    return _observer.get()

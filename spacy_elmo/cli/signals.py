"""Orderly stop of a long command by Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopSignal(threading.Event):
    """Event that the first SIGINT or SIGTERM sets. The second one ends the program at once, as usual."""

    number: int | None = None
    """Number of the received signal."""

    @property
    def exit_code(self) -> int:
        """Exit code that a shell reports for a program ended by the signal; without a signal, that of SIGTERM."""
        return 128 + (self.number or signal.SIGTERM)


@contextmanager
def stop_signal() -> Iterator[StopSignal]:
    """Yield an event that SIGINT and SIGTERM set inside the `with` block."""
    stop = StopSignal()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def handle(number: int, _: FrameType | None) -> None:
        restore()
        stop.number = number
        stop.set()

    for number in handlers:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        restore()

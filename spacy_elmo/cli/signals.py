"""Ctrl-C and SIGTERM ask a long command to stop in good order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopSignal(threading.Event):
    """Set by the first signal. The second one does what it always did: it ends the program where it stands."""

    number: int | None = None
    """Of the signal that came."""

    @property
    def exit_code(self) -> int:
        """What a shell reports of a program that a signal has ended; SIGTERM, if none came here."""
        return 128 + (self.number or signal.SIGTERM)


@contextmanager
def stop_signal() -> Iterator[StopSignal]:
    """Within it, SIGINT and SIGTERM set what it yields."""
    stop = StopSignal()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, _: FrameType | None) -> None:
        restore()
        stop.number = number
        stop.set()

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        restore()

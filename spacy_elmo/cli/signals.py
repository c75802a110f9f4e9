"""Orderly stop of a long command by Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class StopSignal(threading.Event):
    """Event that the first SIGINT or SIGTERM inside its `with` block sets. The second one ends the program at once, as
    usual."""

    def __init__(self) -> None:
        super().__init__()
        self.number: int | None = None
        """Number of the received signal."""

    @property
    def exit_code(self) -> int:
        """Exit code that a shell reports for a program ended by the signal; without a signal, that of SIGTERM."""
        return 128 + (self.number or signal.SIGTERM)

    def __enter__(self) -> StopSignal:
        numbers = (signal.SIGINT, signal.SIGTERM)
        self._handlers = {number: signal.signal(number, self._handle) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        self.__exit__()
        self.number = number
        self.set()

"""Output file for libraries (HDF5, torch) that handle write errors badly."""

from __future__ import annotations

import io
from typing import Any


class OutputFile(io.FileIO):
    """Output file that stores the first write error. The method `raise_error` raises this error later.

    With a normal file, the HDF5 library crashes the process if a write fails while the file is being closed,
    and torch raises a RuntimeError that does not contain the reason.
    """

    _error: OSError | None = None

    def write(self, data: Any) -> int:
        remaining = memoryview(data).cast("B")
        size = len(remaining)
        while len(remaining) and self._error is None:
            try:
                remaining = remaining[super().write(remaining) or 0 :]
            except OSError as error:
                self._error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self._error = self._error or error
            return size or 0

    def raise_error(self) -> None:
        """Raise the first write error, if there was one."""
        if self._error is not None:
            raise self._error

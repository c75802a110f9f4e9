"""Files for libraries that cannot cope with an error of writing."""

from __future__ import annotations

import io
from typing import Any


class OutputFile(io.FileIO):
    """A file that keeps the first error of writing until `raise_error`.

    The HDF5 library crashes the process if it cannot write while it closes a file, and torch raises a RuntimeError
    without the reason. So they must not notice.
    """

    _error: OSError | None = None

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        while len(left) and self._error is None:
            try:
                left = left[super().write(left) or 0 :]
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
        """Raise the first error of writing, if there was one."""
        if self._error is not None:
            raise self._error

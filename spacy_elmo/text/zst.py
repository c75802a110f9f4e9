"""Reader of files that are compressed with Zstandard (`.zst`)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import zstandard

_BYTES_PER_READ = 1 << 14
_MAX_WINDOW = 1 << 31
"""Largest distance in bytes to repeated text, which must be kept in memory: that of `zstd --long=31`."""


class ZstReader(io.RawIOBase):
    """Stream of the decompressed bytes of a `.zst` file. The file can have several frames (compressed parts).

    This class replaces the reader of the library zstandard, because that reader does not detect a truncated
    file, and ignores all frames after the first. `pzstd` and `cat a.zst b.zst` create several frames.

    Raises:
        EOFError: the file is truncated, or is not a zstd file.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._frame = self._new_frame()
        self._decompressed = memoryview(b"")

    def readable(self) -> bool:
        """Return True: this stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes into a buffer. Return the number of bytes, or 0 at the end of the file."""
        while not self._decompressed:
            compressed = self._file.read(_BYTES_PER_READ)
            if not compressed:
                if not self._frame.eof:
                    raise EOFError("the file is truncated: its last frame has no end")
                return 0
            self._decompressed = memoryview(self._decompress(compressed))
        size = min(len(buffer), len(self._decompressed))
        buffer[:size] = self._decompressed[:size]
        self._decompressed = self._decompressed[size:]
        return size

    def _decompress(self, compressed: bytes) -> bytes:
        pieces = []
        try:
            while compressed:
                if self._frame.eof:
                    self._frame = self._new_frame()
                pieces.append(self._frame.decompress(compressed))
                compressed = self._frame.unused_data if self._frame.eof else b""
        except zstandard.ZstdError as error:
            raise EOFError(str(error)) from error
        return b"".join(pieces)

    def _new_frame(self) -> Any:
        return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()

    def close(self) -> None:
        """Close this stream and the compressed file."""
        self._file.close()
        super().close()

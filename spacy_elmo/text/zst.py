"""Reading `.zst` files to their end, or not at all."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import zstandard

_BYTES_PER_READ = 1 << 14


class ZstReader(io.RawIOBase):
    """The unpacked bytes of a file of one or more frames.

    zstandard's own reader takes the end of a truncated file for the end of the text, and stops after the first frame
    of a file of several (`pzstd`, `cat a.zst b.zst`): both lose text without a word.

    Raises:
        EOFError: the file is truncated, or no zstd file at all.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._frame: Any = zstandard.ZstdDecompressor().decompressobj()
        self._unpacked = memoryview(b"")

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, or as much of it as is at hand; 0 at the end."""
        while not self._unpacked:
            packed = self._file.read(_BYTES_PER_READ)
            if not packed:
                if not self._frame.eof:
                    raise EOFError("truncated: its last frame has no end")
                return 0
            self._unpacked = memoryview(self._unpack(packed))
        size = min(len(buffer), len(self._unpacked))
        buffer[:size] = self._unpacked[:size]
        self._unpacked = self._unpacked[size:]
        return size

    def _unpack(self, packed: bytes) -> bytes:
        pieces = []
        try:
            while packed:
                if self._frame.eof:
                    self._frame = zstandard.ZstdDecompressor().decompressobj()
                pieces.append(self._frame.decompress(packed))
                packed = self._frame.unused_data if self._frame.eof else b""
        except zstandard.ZstdError as error:
            raise EOFError(str(error)) from error
        return b"".join(pieces)

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()

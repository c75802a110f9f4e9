"""Decoders for varints (encoded numbers) and protocol buffers (messages), which TensorFlow's files
contain."""

from __future__ import annotations

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}


def varint(data: bytes, start: int) -> tuple[int, int]:
    """Decode a varint. Each byte contains seven bits of the number, the lowest bits first. The highest bit of
    a byte is 1 if more bytes follow.

    Args:
        start: position of the first byte of the varint in `data`.

    Returns:
        The number, 0 to 2^64 - 1, and the position of the first byte after the varint.

    Raises:
        ValueError: the data end in the middle of the number, or the number has more than 64 bits.
    """
    number = 0
    for offset in range(start, min(start + 10, len(data))):
        number |= (data[offset] & 0x7F) << 7 * (offset - start)
        if data[offset] < 0x80:
            if number >> 64:
                break
            return number, offset + 1
    raise ValueError(f"byte {start} does not start a number of 64 bits")


class Message:
    """Protocol buffer message, decoded without a schema. The caller must know what each field means.

    Source: https://protobuf.dev/programming-guides/encoding/

    Raises:
        ValueError: the message is damaged.
    """

    def __init__(self, data: bytes) -> None:
        self._numbers: dict[int, int] = {}
        self._parts: dict[int, list[bytes]] = {}
        offset = 0
        while offset < len(data):
            tag, offset = varint(data, offset)
            field, kind = tag >> 3, tag & 7
            if kind == _VARINT:
                self._numbers[field], offset = varint(data, offset)
                continue
            if kind == _BYTES:
                size, offset = varint(data, offset)
            elif kind in _FIXED_SIZES:
                size = _FIXED_SIZES[kind]
            else:
                raise ValueError(f"field {field} has the unknown kind {kind}")
            content, offset = data[offset : offset + size], offset + size
            if len(content) < size:
                raise ValueError(
                    f"field {field} should have {size} bytes, but only {len(content)} are present"
                )
            if kind == _BYTES:
                self._parts.setdefault(field, []).append(content)
            else:
                self._numbers[field] = int.from_bytes(content, "little")

    def number(self, field: int) -> int:
        """Return the integer in a field. It is 0 if the field is missing, because messages omit such fields.

        Args:
            field: number of the field.
        """
        number = self._numbers.get(field, 0)
        return number - (1 << 64) if number >> 63 else number

    def parts(self, field: int) -> list[bytes]:
        """Return all values of a repeated field, in order. The values are strings or nested messages."""
        return self._parts.get(field, [])

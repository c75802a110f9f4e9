"""Reader of TensorFlow's table files, which map strings to strings in the format of LevelDB.

    file     data blocks, a metaindex block (empty), an index block, the footer
    footer   48 bytes: handle of the metaindex block, handle of the index block, zeros up to byte 40, magic
             number (8 bytes)
    handle   offset and size of a block, as two varints (see `protobuf.varint`)
    block    entries, offsets of the restarts (4 bytes each), number of restarts (4 bytes). A restart is an
             entry that contains its whole key. After the block come 1 byte for the compression, and 4 bytes
             for the masked CRC-32C of the block and the compression byte. The size of the block does not
             include these 5 bytes
    entry    three varints: number of first bytes of the key that are the same as in the previous key, number
             of other bytes of the key, number of bytes of the value. Then the other bytes of the key, and the
             value

The values in the index block are the handles of the data blocks, in the order of the keys. Numbers are
little-endian.

Sources: TensorFlow's `core/lib/io/{format,block,table_builder}.cc`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...limits import MAX_NAME_BYTES, MAX_TENSORS
from .crc32c import crc32c, masked
from .errors import one_error
from .protobuf import varint

_MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER = 48
_TRAILER = 5


def is_table(path: Path) -> bool:
    """Return True if a file ends with the magic number of TensorFlow's table files.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - len(_MAGIC)))
        return file.read() == _MAGIC


def read_table(path: Path) -> dict[bytes, bytes]:
    """Read the keys and values of a table file, in the order of the keys, and verify the checksums.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: the file is not a table, or is truncated, damaged or compressed.
    """
    with one_error(path, "a readable table of TensorFlow"):
        return _entries(path.read_bytes())


def _entries(data: bytes) -> dict[bytes, bytes]:
    if not data.endswith(_MAGIC) or len(data) < _FOOTER:
        raise ValueError("it does not end in the format's footer")
    _, _, start = _handle(data, len(data) - _FOOTER)  # the metaindex block, which is empty
    offset, size, _ = _handle(data, start)
    entries: dict[bytes, bytes] = {}
    last = b""
    for _, handle in _block_entries(_block(data, offset, size)):
        offset, size, _ = _handle(handle, 0)
        for key, value in _block_entries(_block(data, offset, size)):
            # This also refuses a damaged index that refers to the same block many times.
            if entries and key <= last:
                raise ValueError(f"the keys are not in order: {key!r} comes after {last!r}")
            entries[key], last = value, key
            if len(entries) > MAX_TENSORS:
                raise ValueError(f"it has more than {MAX_TENSORS:,} keys, the limit")
    return entries


def _handle(data: bytes, start: int) -> tuple[int, int, int]:
    """Decode a handle (reference to a block) at the position `start`. Return the offset and the size of the
    block, and the position after the handle."""
    offset, start = varint(data, start)
    size, start = varint(data, start)
    return offset, size, start


def _block(data: bytes, offset: int, size: int) -> bytes:
    """Verify the checksum of the block of `size` bytes at `offset`, and return the block."""
    end = offset + size
    if end + _TRAILER > len(data):
        raise ValueError(
            f"a block of {size} bytes at byte {offset} exceeds the file of {len(data)} bytes"
        )
    stored = int.from_bytes(data[end + 1 : end + _TRAILER], "little")
    if masked(crc32c(data[offset : end + 1])) != stored:
        raise ValueError(f"the block at byte {offset} does not match its checksum")
    if data[end]:
        raise ValueError(f"the block at byte {offset} is compressed, which is not supported")
    return data[offset:end]


def _block_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * restarts
    if end < 0:
        raise ValueError(f"a block of {len(block)} bytes cannot have {restarts} restarts")
    offset, key = 0, b""
    while offset < end:
        shared, offset = varint(block, offset)
        unshared, offset = varint(block, offset)
        length, offset = varint(block, offset)
        if shared > len(key) or unshared + length > end - offset:
            raise ValueError(f"the entry before byte {offset} of a block is impossible")
        if shared + unshared > MAX_NAME_BYTES:
            raise ValueError(
                f"a key has {shared + unshared:,} bytes, the limit is {MAX_NAME_BYTES:,}"
            )
        key = key[:shared] + block[offset : offset + unshared]
        offset += unshared
        yield key, block[offset : offset + length]
        offset += length

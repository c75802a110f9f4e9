"""Fast computation of CRC-32C checksums of large arrays with NumPy.

The bits of the data are the coefficients of a polynomial over GF(2). The checksum is the remainder of this
polynomial modulo Castagnoli's polynomial. If two 32-bit words of the data are k bits apart, the earlier word
can be removed without changing the remainder: multiply it by x^k, and add the product to the later word. So
the code needs no loop over bytes. One NumPy operation removes the first half of the array in this way. The
operation is repeated until one word is left.
"""

from __future__ import annotations

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78
"""Castagnoli's polynomial without x^32. The highest bit is the coefficient of x^0 (RFC 3720, appendix
B.4)."""
_ONE = 1 << 31  # x^0
_BYTES_PER_BLOCK = 1 << 22


def crc32c(data: bytes | np.ndarray) -> int:
    """Compute the CRC-32C of bytes (RFC 3720; TensorFlow's `crc32c::Value`).

    Args:
        data: bytes, or a contiguous array.
    """
    buffer = np.frombuffer(data, dtype=np.uint8)
    register = 0xFFFFFFFF
    for start in range(0, len(buffer), _BYTES_PER_BLOCK):
        register = _after(register, buffer[start : start + _BYTES_PER_BLOCK])
    return register ^ 0xFFFFFFFF


def masked(checksum: int) -> int:
    """Return a checksum in the masked form that TensorFlow stores (`core/lib/hash/crc32c.h:Mask`)."""
    rotated = (checksum >> 15) | (checksum << 17)
    return (rotated + 0xA282EAD8) & 0xFFFFFFFF


def _after(register: int, block: np.ndarray) -> int:
    """Return the CRC register (the intermediate checksum) after the bytes `block`. The argument `register` is
    the CRC register before these bytes."""
    whole = len(block) // 4 * 4
    if whole:
        words = block[:whole].view("<u4").astype(np.uint32)
        words[0] ^= np.uint32(register)
        register = _remainder(words)
    for byte in block[whole:].tolist():
        # Add the byte to the highest powers, then multiply everything by x^8.
        register = _times_power(register ^ byte, 8)
    return register


def _remainder(words: np.ndarray) -> int:
    """Multiply the polynomial of an array of 32-bit words by x^32, and return the remainder modulo
    Castagnoli's polynomial. The function overwrites the array."""
    while len(words) > 1:
        kept = 1 << (len(words) - 1).bit_length() - 1
        upper, words = words[:-kept], words[-kept:]
        low, high = _tables(kept.bit_length() - 1)
        words[-len(upper) :] ^= low[upper & 0xFFFF] ^ high[upper >> 16]
    return _times_power(int(words[0]), 32)


@functools.cache
def _tables(level: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two tables for the multiplication of 32-bit words by x^(32 * 2^level).

    The first table contains the product for each of the 65,536 values of the lower 16 bits of a word, the
    second table for each value of the upper 16 bits.
    """
    factor = _times_power(_ONE, 32)
    for _ in range(level):
        factor = _product(factor, factor)
    rows = []
    for shift in (0, 16):
        row = np.zeros(1, dtype=np.uint32)
        for bit in range(16):  # products are linear, so each bit doubles the row
            row = np.concatenate([row, row ^ np.uint32(_product(1 << shift + bit, factor))])
        rows.append(row)
    return rows[0], rows[1]


def _times_power(a: int, power: int) -> int:
    """Return the polynomial a, multiplied by x^power, modulo Castagnoli's polynomial."""
    for _ in range(power):
        a = a >> 1 ^ (_POLYNOMIAL if a & 1 else 0)
    return a


def _product(a: int, b: int) -> int:
    """Return the product of the polynomials a and b modulo Castagnoli's polynomial."""
    result = 0
    for bit in range(31, -1, -1):  # from the coefficient of x^0 up
        if a >> bit & 1:
            result ^= b
        b = _times_power(b, 1)
    return result

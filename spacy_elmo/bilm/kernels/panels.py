"""Weight matrices cut into panels: strips of 16 columns. Each panel is stored row after row, so that a kernel
reads contiguous memory.

In bfloat16 two rows are interleaved, because instructions multiply pairs of numbers and add both products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .native import functions

_PANEL = 16


class Panels(NamedTuple):
    """A float32 matrix, stored as panels (strips of 16 columns)."""

    numbers: Tensor
    """The result of `pack`."""
    columns: int
    """Number of columns of the matrix."""


def pack(parts: Sequence[Tensor], compute_dtype: torch.dtype) -> Tensor:
    """Stack matrices vertically, and cut the result into panels (strips of 16 columns): (panels, rows, 16).

    Before stacking, each matrix is padded to a multiple of 16 rows.

    Args:
        parts: the matrices, (rows, 1, columns) each; or, for the four gates of an LSTM, (rows, 4, columns per
            gate) each. With gates, the first panel of each of the four gates comes first, then the second
            panel of each gate, and so on.
        compute_dtype: data type of the result.
    """
    heights = [padded(len(part)) for part in parts]
    blocks, columns = parts[0].shape[1:]
    panels = -(-columns // _PANEL) * blocks
    packed = parts[0].new_empty((panels, sum(heights), _PANEL), dtype=compute_dtype)
    start = 0
    for part, height in zip(parts, heights, strict=True):
        inner, by_gate, column = part.stride()
        functions("pack_panels")[compute_dtype](
            panels, height, len(part), columns, blocks, part, inner, column, by_gate,
            packed[:1, start:], packed.stride(0),
        )  # fmt: skip
        start += height
    return packed


def rows_apart(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Allocate a matrix with a gap in memory after each row.

    A matrix product reads several rows at once. Without the gap, rows at a distance of a power of two would
    compete for the same few lines of the processor's cache.
    """
    rows, columns = shape
    return torch.empty((rows, columns + 32), dtype=dtype, device="cpu")[:, :columns]


def padded(size: int, to: int = _PANEL) -> int:
    """Return `size`, rounded up to a multiple of `to`. The default is 16, the width of a panel."""
    return -(-size // to) * to

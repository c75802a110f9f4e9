"""Weight matrices as panels of 16 columns. A panel is stored row after row, so a kernel reads contiguous memory.

In bfloat16 two rows are interleaved, because one lane of an instruction multiplies two numbers and adds both products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .native import functions

_PANEL = 16


class Panels(NamedTuple):
    """A float32 matrix (k, m), stored as panels."""

    numbers: Tensor
    columns: int
    """Number of columns of the matrix, m."""


def pack(parts: Sequence[Tensor], compute_dtype: torch.dtype) -> Tensor:
    """Stack matrices vertically, and cut the result into panels of 16 columns, (panels, rows, 16).

    The number of rows of each matrix is padded to a multiple of 16.

    Args:
        parts: matrices with k rows: (k, 1, m) for m columns, or (k, 4, C) for C columns of each of four gates.
            With gates, the first panel of each gate comes first, then the second panel of each gate, and so on.
    """
    heights = [padded(len(part)) for part in parts]
    blocks, columns = parts[0].shape[1:]
    panels = -(-columns // _PANEL) * blocks
    packed = torch.empty((panels, sum(heights), _PANEL), dtype=compute_dtype)
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
    """Allocate a tensor for the left matrix of a product, with a gap after each row.

    A product reads up to twelve rows at once. Rows whose distance is a power of two compete for few lines of
    the cache.
    """
    rows, columns = shape
    return torch.empty((rows, columns + 32), dtype=dtype)[:, :columns]


def padded(size: int, to: int = _PANEL) -> int:
    """Return `size`, rounded up to a multiple of `to`. The default is 16, the number of columns of a panel."""
    return -(-size // to) * to

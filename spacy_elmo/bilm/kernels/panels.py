"""Weight matrices as panels of 16 columns, row after row: what the kernels read lies end to end.

In bfloat16 the rows lie two and two, because one lane of an instruction multiplies two numbers and adds both products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .native import functions

_PANEL = 16


class Panels(NamedTuple):
    """A float32 matrix (k, m), packed for products."""

    numbers: Tensor
    columns: int
    """m"""


def pack(parts: Sequence[Tensor], compute_dtype: torch.dtype) -> Tensor:
    """Return matrices below each other in panels, each padded to a multiple of 16 rows: (panels, rows, 16).

    Args:
        parts: (k, 1, m) each, or (k, 4, C), of which a panel of each of the four comes before the next of each.
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
    """Return memory for a left matrix of this shape with a gap behind each row.

    Rows that are a power of two apart take the same few places of a cache, and a product reads up to twelve at once.
    """
    rows, columns = shape
    return torch.empty((rows, columns + 32), dtype=dtype)[:, :columns]


def padded(size: int, to: int = _PANEL) -> int:
    """Return the size rounded up to a multiple of `to`: of the columns of a panel."""
    return -(-size // to) * to

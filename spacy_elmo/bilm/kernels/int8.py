"""Quantization for matrix products in 8-bit integers. Each row of the left matrix and each column of the
right matrix has its own scale."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from .native import float32_function

LARGEST = 127


@functools.cache
def sums_are_exact() -> bool:
    """Return True if this processor adds products of 8-bit integers in 32 bits. Processors without VNNI
    instructions (before Cascade Lake and Zen 4) add pairs of products in 16 bits, and these sums saturate."""
    ones = torch.full((32, 64), LARGEST, dtype=torch.int8, device="cpu")
    return bool((torch._int_mm(ones, ones.t()) == 64 * LARGEST**2).all())


def quantize(x: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize each row of a matrix to integers from -127 to 127, where 127 stands for the largest magnitude
    in the row.

    Args:
        x: (rows, columns) float32, contiguous.

    Returns:
        The integers, (rows, columns) int8; and the scale of each row, (rows,) float32. The scale is the value
        that the integer 1 stands for. The scale is NaN if the row contains NaN or infinity.
    """
    if function := float32_function("quantize", x):
        whole, scales = torch.empty_like(x, dtype=torch.int8), x.new_empty(len(x))
        function(torch.get_num_threads(), *x.shape, x, whole, scales)
        return whole, scales
    most = x.abs().amax(1)
    most = torch.where(most.isfinite(), most, torch.nan)  # also NaN for a row with infinity
    steps = torch.where(most > 0, LARGEST / most, 0.0)
    return (x * steps[:, None]).round().to(torch.int8), most / LARGEST


def dequantize(sums: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Convert the product of two quantized matrices back to float32.

    Args:
        sums: the product of the integers, (rows, columns) int32, contiguous. The tensor is overwritten.
        rows: the scale of each row of the left matrix, (rows,) float32.
        columns: the scale of each column of the right matrix, (columns,) float32.

    Returns:
        (rows, columns) float32.
    """
    if function := float32_function("dequantize", rows, columns):
        function(torch.get_num_threads(), *sums.shape, sums, rows, columns)
        return sums.view(torch.float32)
    return sums.float().mul_(rows[:, None]).mul_(columns)

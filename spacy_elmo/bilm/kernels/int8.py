"""Products in 8-bit integers: every row and every column has a scale of its own."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from .native import address, native_function

LARGEST = 127


@functools.cache
def sums_are_exact() -> bool:
    """Whether this processor adds up products of bytes in 32 bits. Those without VNNI (before Cascade Lake and Zen 4)
    add pairs of them in 16 bits, and cut off what does not fit."""
    ones = torch.full((32, 64), LARGEST, dtype=torch.int8)
    return bool((torch._int_mm(ones, ones.t()) == 64 * LARGEST**2).all())


def quantize(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as whole numbers from -127 to 127, the largest magnitude of each as 127.

    A row is scaled by itself alone, so that it does not depend on those that happen to be read beside it. Where one
    number of a row is none, its scale is none.

    Args:
        x: (n, k) float32, contiguous.

    Returns:
        (n, k) int8, and (n,) float32 what 1 stands for in each row.
    """
    if function := native_function("quantize", x):
        whole, scales = torch.empty_like(x, dtype=torch.int8), x.new_empty(len(x))
        function(torch.get_num_threads(), *x.shape, *map(address, (x, whole, scales)))
        return whole, scales
    most = x.abs().amax(1)
    steps = torch.where(most > 0, LARGEST / most, 0.0)
    return (x * steps[:, None]).round().to(torch.int8), most / LARGEST


def dequantize(sums: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The numbers that sums of products of scaled rows and columns stand for.

    Args:
        sums: (n, m) int32, contiguous; overwritten.
        rows: (n,) float32 scales.
        columns: (m,) float32 scales.

    Returns:
        (n, m) float32.
    """
    if function := native_function("dequantize", rows, columns):
        function(torch.get_num_threads(), *sums.shape, *map(address, (sums, rows, columns)))
        return sums.view(torch.float32)
    return sums.float().mul_(rows[:, None]).mul_(columns)

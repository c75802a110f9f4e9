"""Weight matrices that are converted and prepacked once, and used in many products."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from ..matmul_precision import PRECISIONS, Precision
from . import int8
from .matmul import matmul, multiply
from .native import float32_function
from .panels import Panels, pack


class MatmulWeight(Protocol):
    """Interface of a weight matrix (k, m). A call computes rows @ matrix."""

    dtype: torch.dtype
    """Data type of the rows and of the products."""

    def __call__(self, x: Tensor, /) -> Tensor:
        """Multiply rows by the matrix: (n, k) -> (n, m)."""


class PlainWeight:
    """A matrix in torch's layout, converted to a data type."""

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        self.weight, self.dtype = weight.to(dtype), dtype

    def __call__(self, x: Tensor) -> Tensor:
        return matmul(x, self.weight)


class PackedWeight:
    """A float32 matrix that is packed into panels once. `matmul` would pack the matrix for every product,
    with the same results."""

    dtype = torch.float32

    def __init__(self, weight: Tensor) -> None:
        self.panels = Panels(pack([weight[:, None]], torch.float32), weight.shape[1])

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        out = x.new_empty((len(x), self.panels.columns))
        multiply(x, self.panels, bias, out)
        return out


class Int8Weight:
    """A matrix of 8-bit integers with a scale for each column. The rows that are multiplied by the matrix are
    quantized, too."""

    dtype = torch.float32

    def __init__(self, weight: Tensor) -> None:
        whole, self._scales = int8.quantize(weight.t().float().contiguous())
        if not int8.sums_are_exact():
            # This processor adds pairs of products in 16 bits: 2 * 127 * 127 overflows, but 2 * 127 * 63 does not.
            whole, self._scales = whole.div(2, rounding_mode="trunc"), self._scales * 2
        # The shorter side is contiguous. For few rows, this was measured to be up to three times as fast.
        rows, columns = weight.shape
        self._whole = whole.t() if rows <= columns else whole.t().contiguous()

    def __call__(self, x: Tensor) -> Tensor:
        whole, scales = int8.quantize(x.contiguous())
        return int8.dequantize(torch._int_mm(whole, self._whole), scales, self._scales)


def check_precision(precision: Precision, device: torch.device) -> None:
    """Check that a device supports a precision.

    Raises:
        ValueError: the precision is unknown, or the device does not support it.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision = {precision!r}: expected one of {', '.join(PRECISIONS)}")
    if precision == "int8" and device.type != "cpu":
        raise ValueError('precision = "int8" is for CPUs; on a GPU use "bfloat16" or "float16"')
    if precision == "float16" and device.type == "cpu":
        raise ValueError('precision = "float16" is for GPUs; on a CPU use "bfloat16" or "int8"')


def prepack(weight: Tensor, precision: Precision) -> MatmulWeight:
    """Convert and prepack a matrix for inference. Later changes of `weight` may have no effect on the result.

    Raises:
        ValueError: see `check_precision`.
    """
    check_precision(precision, weight.device)
    if precision == "int8":
        return Int8Weight(weight)
    return convert(weight, getattr(torch, precision))


def convert(weight: Tensor, dtype: torch.dtype) -> PlainWeight | PackedWeight:
    """Convert a matrix once for several products in the data type `dtype`. The results are the same as with
    `matmul`."""
    if dtype == torch.float32 and float32_function("product", weight):
        return PackedWeight(weight)
    return PlainWeight(weight, dtype)

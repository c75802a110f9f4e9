"""Weight matrices that are converted to a data type and a memory layout once, and used in many products."""

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
    """Interface of a weight matrix (inputs, outputs) that is ready for products."""

    dtype: torch.dtype
    """Data type of the tensors that a call takes and returns."""

    def __call__(self, x: Tensor, /) -> Tensor:
        """Compute x @ matrix: (rows, inputs) -> (rows, outputs)."""


class PlainWeight:
    """A weight matrix in torch's memory layout, converted to a data type."""

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        self.weight, self.dtype = weight.to(dtype), dtype

    def __call__(self, x: Tensor) -> Tensor:
        return matmul(x, self.weight)


class PackedWeight:
    """A float32 weight matrix that is packed only once for the C functions. The results are those of
    `matmul`, which packs the matrix for every product."""

    dtype = torch.float32

    def __init__(self, weight: Tensor) -> None:
        self.panels = Panels(pack([weight[:, None]], torch.float32), weight.shape[1])

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        out = x.new_empty((len(x), self.panels.columns))
        multiply(x, self.panels, bias, out)
        return out


class Int8Weight:
    """A weight matrix of 8-bit integers with a scale for each column. A call also quantizes its input."""

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
        ValueError: the precision is unknown, or the device does not support this precision.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision = {precision!r}: expected one of {', '.join(PRECISIONS)}")
    if precision == "int8" and device.type != "cpu":
        raise ValueError('precision = "int8" is for CPUs; on a GPU use "bfloat16" or "float16"')
    if precision == "float16" and device.type == "cpu":
        raise ValueError('precision = "float16" is for GPUs; on a CPU use "bfloat16" or "int8"')


def prepack(weight: Tensor, precision: Precision) -> MatmulWeight:
    """Convert a matrix (inputs, outputs) for inference. Later changes of `weight` possibly have no effect on
    the result.

    Raises:
        ValueError: the precision is unknown, or the device of `weight` does not support this precision.
    """
    check_precision(precision, weight.device)
    if precision == "int8":
        return Int8Weight(weight)
    return convert(weight, getattr(torch, precision))


def convert(weight: Tensor, dtype: torch.dtype) -> PlainWeight | PackedWeight:
    """Convert a matrix (inputs, outputs) once for several products in the data type `dtype`. The products are
    the same as those of `matmul`."""
    if dtype == torch.float32 and float32_function("product", weight):
        return PackedWeight(weight)
    return PlainWeight(weight, dtype)

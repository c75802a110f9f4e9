"""Weight matrices made ready for prediction: converted and laid out once, multiplied many times."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from ..matmul_precision import PRECISIONS, Precision
from . import int8
from .matmul import FEWEST_ROWS, ONEDNN, matmul

# oneDNN lays a matrix out for so many rows. Any number may be multiplied.
_TYPICAL_ROWS = 32


class MatmulWeight(Protocol):
    """(k, m), by which rows are multiplied from the left."""

    dtype: torch.dtype
    """Of what goes in and comes out."""

    def __call__(self, x: Tensor, /) -> Tensor:
        """(n, k) -> (n, m)."""


class PlainWeight:
    """A matrix as it lies in memory, of the type given."""

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        self._weight, self.dtype = weight.to(dtype), dtype

    def __call__(self, x: Tensor) -> Tensor:
        return matmul(x, self._weight)


class PrepackedWeight:
    """A matrix in the blocks in which oneDNN's kernels read it, into which it is otherwise brought at every product.

    That saves a fourth to a half of the time for tens of rows, and little for hundreds.
    """

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        weight = weight.to(dtype)
        # Too few rows for oneDNN are multiplied by the matrix itself, which costs no memory: it is the parameter.
        self._weight = weight if dtype == torch.float32 else None
        self._blocks = torch.ops.mkldnn._reorder_linear_weight(
            weight.t().contiguous(), _TYPICAL_ROWS
        )
        self.dtype = dtype

    def __call__(self, x: Tensor) -> Tensor:
        if self._weight is not None and x.shape[0] < FEWEST_ROWS:
            return x @ self._weight
        return torch.ops.mkldnn._linear_pointwise(x, self._blocks, None, "none", [], "")


class Int8Weight:
    """A matrix of 8-bit integers with a scale for each column. Rows are scaled when they come in."""

    dtype = torch.float32

    def __init__(self, weight: Tensor) -> None:
        whole, self._scales = int8.quantize(weight.t().float().contiguous())
        if not int8.sums_are_exact():
            # Two products of 127 and 63 fit into 16 bits, two of 127 and 127 do not.
            whole, self._scales = whole.div(2, rounding_mode="trunc"), self._scales * 2
        # The shorter side is contiguous: measured, that is up to three times as fast as the other way for few rows.
        rows, columns = weight.shape
        self._whole = whole.t() if rows <= columns else whole.t().contiguous()

    def __call__(self, x: Tensor) -> Tensor:
        whole, scales = int8.quantize(x.contiguous())
        return int8.dequantize(torch._int_mm(whole, self._whole), scales, self._scales)


def check_precision(precision: Precision, device: torch.device) -> None:
    """
    Raises:
        ValueError: the device does not multiply in this precision.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision = {precision!r}: expected one of {', '.join(PRECISIONS)}")
    if precision == "int8" and device.type != "cpu":
        raise ValueError('precision = "int8" is for CPUs; on a GPU take "bfloat16" or "float16"')
    if precision == "float16" and device.type == "cpu":
        raise ValueError('precision = "float16" is for GPUs; on a CPU take "bfloat16" or "int8"')


def ready(weight: Tensor, precision: Precision) -> MatmulWeight:
    """A matrix for prediction. Later changes of `weight` may or may not show.

    Raises:
        ValueError: see `check_precision`.
    """
    check_precision(precision, weight.device)
    if precision == "int8":
        return Int8Weight(weight)
    dtype = getattr(torch, precision)
    if weight.is_cpu and weight.numel() and _packs(dtype):
        return PrepackedWeight(weight, dtype)
    return PlainWeight(weight, dtype)


def _packs(dtype: torch.dtype) -> bool:
    """Whether oneDNN multiplies numbers of this type on this processor."""
    if not ONEDNN:
        return False
    return dtype == torch.float32 or torch.ops.mkldnn._is_mkldnn_bf16_supported()

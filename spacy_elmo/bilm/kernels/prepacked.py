"""Weight matrices that are converted to a data type and a memory layout once, and used in many products."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor

from .matmul import matmul, multiply
from .native import float32_function
from .panels import Panels, pack


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


MatmulWeight: TypeAlias = PlainWeight | PackedWeight


def convert(weight: Tensor, dtype: torch.dtype) -> MatmulWeight:
    """Convert a matrix (inputs, outputs) once for several products in the data type `dtype`. The products are
    the same as those of `matmul`."""
    if dtype == torch.float32 and float32_function("product", weight):
        return PackedWeight(weight)
    return PlainWeight(weight, dtype)

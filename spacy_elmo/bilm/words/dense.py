"""Dense layers. For prediction, there are also prepacked dense layers, which convert their matrix only once,
not in every call."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from ..kernels.matmul import matmul
from ..kernels.panels import Panels
from ..kernels.prepacked import PackedWeight, convert


class Dense(nn.Module):
    """A dense layer, x W + b. W has the shape (inputs, outputs), as in TensorFlow, because imported matrices
    then need not be transposed.

    *Shape:* (rows, inputs) -> (rows, outputs).
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters as bilm-tf does: the matrix is drawn from a normal distribution with
        variance 1 / (number of inputs), and the bias is 0."""
        nn.init.normal_(self.weight, std=len(self.weight) ** -0.5)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return matmul(x, self.weight, self.bias)


class PrepackedDense(nn.Module):
    """A dense layer for prediction only, in which the matrix is already converted to the data type and the
    memory layout of the product."""

    def __init__(self, dense: Dense, dtype: torch.dtype) -> None:
        super().__init__()
        self.bias = dense.bias.detach()
        self._weight = convert(dense.weight.detach(), dtype)

    @property
    def panels(self) -> Panels | None:
        """The float32 matrix, packed for the C functions; None if there are no C functions, or if the
        data type is not float32."""
        return self._weight.panels if isinstance(self._weight, PackedWeight) else None

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(self._weight, PackedWeight):
            return self._weight(x, self.bias)
        return self._weight(x.to(self._weight.dtype)).to(self.bias.dtype) + self.bias


def prepack_dense(module: Any, dtype: torch.dtype) -> Any:
    """Return a copy of `module` in which all dense layers are prepacked in the data type `dtype`. The copy
    shares all other parameters with `module`."""
    if isinstance(module, Dense):
        return PrepackedDense(module, dtype)
    other = copy.copy(module)
    other._modules = {
        name: child and prepack_dense(child, dtype) for name, child in module._modules.items()
    }
    return other

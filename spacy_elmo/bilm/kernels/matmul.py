"""Matrix products. In float32 on a CPU, a C function adds in a fixed order. In all other cases torch computes
the product."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .native import float32_function
from .panels import Panels, rows_apart
from .weight_gradient import weight_gradient

_POWER = 1024
"""Number of float32 numbers in 4 KB. If the distance of rows in memory is a multiple of 4 KB, the rows
compete for so few lines of the processor's cache that copying the matrix first is faster."""


def matmul_dtype(x: Tensor) -> torch.dtype:
    """Return the data type in which `matmul` multiplies: the type of torch's autocast if autocast is enabled,
    otherwise the type of `x`."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


def matmul(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x W + b. Differentiable.

    In float32 on a CPU with kernels, the order of the additions does not depend on the number of rows,
    columns or threads. So each number of the result depends only on one row of x, one column of W and one
    number of b.

    Args:
        x: (rows, inputs).
        weight: W, (inputs, outputs), in the data type of x.
        bias: b, (outputs,), in the data type of x; None: zeros.

    Returns:
        (rows, outputs), in the data type that `matmul_dtype` returns.
    """
    compute_dtype = matmul_dtype(x)
    x, weight = x.to(compute_dtype), weight.to(compute_dtype)
    if not float32_function("product", x, weight, bias):
        return x @ weight if bias is None else x @ weight + bias
    if torch.is_grad_enabled() and any(
        t is not None and t.requires_grad for t in (x, weight, bias)
    ):
        return _Product.apply(x, weight, bias)
    out = x.new_empty((len(x), weight.shape[1]))
    multiply(x, weight, bias, out)
    return out


def multiply(x: Tensor, weight: Tensor | Panels, bias: Tensor | None, out: Tensor) -> None:
    """Compute x W + b with the C function, and write the result to `out`. All tensors are float32 on a CPU.

    Args:
        x: (rows, inputs).
        weight: W, either as a tensor (inputs, outputs) with any strides, or as panels (see `panels.pack`).
        bias: b, (outputs,); None: zeros.
        out: (rows, outputs). Each row is contiguous.
    """
    if x.stride(1) != 1 or (x.stride(0) % _POWER == 0 and len(x) > 1):
        x = rows_apart(x.shape, x.dtype).copy_(x)
    bias = None if bias is None else bias.contiguous()
    right: tuple[object, ...]
    if isinstance(weight, Panels):
        right = weight.numbers, None, 0, 0
    else:
        right = None, weight, *weight.stride()
    float32_function("product")(
        torch.get_num_threads(), *x.shape, out.shape[1], x, x.stride(0), *right, bias, out, out.stride(0),
    )  # fmt: skip


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return matmul(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        # The data types must be those of the forward pass.
        with torch.autocast(dy.device.type, enabled=False):
            dx = matmul(dy, weight.t()) if ctx.needs_input_grad[0] else None
            dweight = weight_gradient(x, dy) if ctx.needs_input_grad[1] else None
        return dx, dweight, dy.sum(0) if ctx.needs_input_grad[2] else None

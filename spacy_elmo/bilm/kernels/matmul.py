"""Matrix products, their gradients, and weight matrices that are stored for many products.

In float32 on a CPU, a C function adds in a fixed order. In all other cases torch computes the product.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .native import functions, half_of, pack, rows_apart, weight_gradient

_POWER = 1024
"""Number of float32 numbers in 4 KB. If the distance of rows in memory is a multiple of 4 KB, the rows
compete for so few lines of the processor's cache that copying the matrix first is faster."""
_BFLOAT16_OF_CPU = ("avx512_bf16", "amx_bf16", "bf16")
"""The CPU instructions that multiply bfloat16 numbers, as torch names them. `bf16` is for ARM processors, the
others are for x86."""


def has_bfloat16(device: torch.device) -> bool | None:
    """Return True if `device` has instructions to multiply bfloat16 numbers. Return False if it must emulate
    these instructions, which is much slower than float32, and None if this version of torch cannot tell."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return None
    capabilities: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    said = [bool(capabilities[name]) for name in _BFLOAT16_OF_CPU if name in capabilities]
    return any(said) if said else None


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
    # The C function trusts the shapes; torch says what is wrong with them.
    if x.shape[1] != len(weight) or not functions("product", x, weight, bias):
        return x @ weight if bias is None else x @ weight + bias
    if torch.is_grad_enabled() and any(
        t is not None and t.requires_grad for t in (x, weight, bias)
    ):
        return _Product.apply(x, weight, bias)
    return multiply(x, weight, bias, x.new_empty((len(x), weight.shape[1])))


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


class PrepackedWeight:
    """A weight matrix W that is converted once to a data type, and for the C function also to panels. Calling
    it computes x W + b for x in this data type, with the result of `matmul`.

    Args:
        weight: (inputs, outputs).
        dtype: data type of the products.
    """

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.columns = weight.shape[1]
        self.has_panels = dtype == torch.float32 and bool(functions("product", weight))
        """True if the matrix is stored as panels, for the C functions."""
        self.numbers = pack([weight[:, None]], dtype) if self.has_panels else weight.to(dtype)
        self.half = half_of(self.numbers) if self.has_panels else None
        """The panels in float16, for products of few rows."""

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        if not self.has_panels:
            return matmul(x, self.numbers, bias)
        return multiply(x, self, bias, x.new_empty((len(x), self.columns)))


def multiply(
    x: Tensor, weight: Tensor | PrepackedWeight, bias: Tensor | None, out: Tensor
) -> Tensor:
    """Compute x W + b with the C function, write the result to `out` and return it. All tensors are float32 on
    a CPU.

    Args:
        x: (rows, inputs).
        weight: W, either as a tensor (inputs, outputs) with any strides, or as panels.
        bias: b, (outputs,); None: zeros.
        out: (rows, outputs). Each row is contiguous.
    """
    if x.stride(1) != 1 or (x.stride(0) % _POWER == 0 and len(x) > 1):
        x = rows_apart(x.shape, x.dtype).copy_(x)
    bias = None if bias is None else bias.contiguous()
    right: tuple[object, ...]
    if isinstance(weight, PrepackedWeight):
        right = weight.numbers, weight.half, None, 0, 0
    else:
        right = None, None, weight, *weight.stride()
    functions("product")[torch.float32](
        torch.get_num_threads(), *x.shape, out.shape[1], x, x.stride(0), *right, bias, out, out.stride(0),
    )  # fmt: skip
    return out

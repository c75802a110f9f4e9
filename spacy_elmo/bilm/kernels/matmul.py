"""Matrix products, their gradients, and weight matrices that are stored for many products.

In float32 on a CPU, a C function adds in a fixed order. In all other cases torch computes the product. The C
functions read a weight matrix as panels: strips of 16 columns. Each panel is stored row after row, so that a
kernel reads contiguous memory. In bfloat16 two rows are interleaved, because instructions multiply pairs of
numbers and add both products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .native import float32_function, functions

_PANEL = 16
_POWER = 1024
"""Number of float32 numbers in 4 KB. If the distance of rows in memory is a multiple of 4 KB, the rows
compete for so few lines of the processor's cache that copying the matrix first is faster."""
# Rows and columns that are packed at once, as in weight_gradient.c.
_GRADIENT_ROWS, _GRADIENT_COLUMNS = 1024, 256
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
    if not float32_function("product", x, weight, bias):
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
        self.has_panels = bool(dtype == torch.float32 and float32_function("product", weight))
        """True if the matrix is stored as panels, for the C functions."""
        self.numbers = pack([weight[:, None]], dtype) if self.has_panels else weight.to(dtype)

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
        right = weight.numbers, None, 0, 0
    else:
        right = None, weight, *weight.stride()
    float32_function("product")(
        torch.get_num_threads(), *x.shape, out.shape[1], x, x.stride(0), *right, bias, out, out.stride(0),
    )  # fmt: skip
    return out


def weight_gradient(left: Tensor, right: Tensor, into: Tensor | None = None) -> Tensor:
    """Compute the gradient of a weight matrix: the transpose of `left` times `right`. The product is not rounded
    to a type below float32.

    Args:
        left: the inputs of a layer, (rows, inputs).
        right: the gradient of the outputs, (rows, outputs), in the data type of `left`.
        into: contiguous float32 tensor (inputs, outputs) to which the product is added; None: a new tensor.

    Returns:
        (inputs, outputs) float32, or float64 for float64 matrices.
    """
    if not left.is_cpu or (function := functions("weight_gradient").get(left.dtype)) is None:
        product = left.t() @ right
        product = product.to(torch.promote_types(product.dtype, torch.float32))
        return product if into is None else into.add_(product)
    left, right = (t if t.stride(1) == 1 else t.contiguous() for t in (left, right))
    (n, k), m = left.shape, right.shape[1]
    # Not with torch's default type and device, which the user can change.
    sums = left.new_empty((k, m), dtype=torch.float32) if into is None else into
    if not n:
        return sums if into is not None else sums.zero_()
    rows = min(n + n % 2, _GRADIENT_ROWS)
    left_scratch = left.new_empty(padded(k) * rows)
    right_scratch = right.new_empty(padded(m, _GRADIENT_COLUMNS) * rows)
    function(
        torch.get_num_threads(), n, left, left.stride(0), k, right, right.stride(0), m,
        sums, m, into is not None, left_scratch, right_scratch,
    )  # fmt: skip
    return sums


def pack(parts: Sequence[Tensor], compute_dtype: torch.dtype) -> Tensor:
    """Stack matrices vertically, and cut the result into panels (strips of 16 columns): (panels, rows, 16).

    Before stacking, each matrix is padded to a multiple of 16 rows.

    Args:
        parts: the matrices, (rows, 1, columns) each; or, for the four gates of an LSTM, (rows, 4, columns per
            gate) each. With gates, the first panel of each of the four gates comes first, then the second
            panel of each gate, and so on.
        compute_dtype: data type of the result.
    """
    heights = [padded(len(part)) for part in parts]
    blocks, columns = parts[0].shape[1:]
    panels = -(-columns // _PANEL) * blocks
    packed = parts[0].new_empty((panels, sum(heights), _PANEL), dtype=compute_dtype)
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
    """Allocate a matrix with a gap in memory after each row.

    A matrix product reads several rows at once. Without the gap, rows at a distance of a power of two would
    compete for the same few lines of the processor's cache.
    """
    rows, columns = shape
    return torch.empty((rows, columns + 32), dtype=dtype, device="cpu")[:, :columns]


def padded(size: int, to: int = _PANEL) -> int:
    """Return `size`, rounded up to a multiple of `to`. The default is 16, the width of a panel."""
    return -(-size // to) * to

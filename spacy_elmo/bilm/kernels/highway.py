"""The forward and backward pass of one highway layer of the character CNN."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .matmul import matmul, multiply
from .native import float32_function
from .panels import Panels
from .weight_gradient import weight_gradient


def highway(
    x: Tensor, carry: Tensor, carry_bias: Tensor, transform: Tensor, transform_bias: Tensor
) -> Tensor:
    """Compute x + c (t - x), where c = σ(x W_c + b_c) and t = relu(x W_t + b_t). Differentiable.

    Args:
        x: (rows, width).
        carry, transform: the matrices W_c and W_t, (width, width) each.
        carry_bias, transform_bias: b_c and b_t, (width,) each.
    """
    parameters = carry, carry_bias, transform, transform_bias
    autocast = torch.is_autocast_enabled(x.device.type)
    if not autocast and float32_function("highway", x, *parameters):
        return _Highway.apply(x, *parameters)
    c = matmul(x, carry, carry_bias).sigmoid()
    return x + c * (matmul(x, transform, transform_bias).relu() - x)


def highway_gates(
    x: Tensor,
    carry: Tensor | Panels,
    carry_bias: Tensor,
    transform: Tensor | Panels,
    transform_bias: Tensor,
) -> tuple[Tensor, Tensor]:
    """Compute a highway layer (see `highway`) with the C functions, without an autograd graph. `x` must be
    contiguous.

    Returns:
        c and t, concatenated, (rows, 2 width); and x + c (t - x), (rows, width).
    """
    gates, out = x.new_empty((len(x), 2 * x.shape[1])), torch.empty_like(x)
    c, t = gates.chunk(2, 1)
    multiply(x, carry, carry_bias, c)
    multiply(x, transform, transform_bias, t)
    float32_function("highway")(torch.get_num_threads(), *x.shape, x, gates, out)
    return gates, out


class _Highway(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        carry: Tensor,
        carry_bias: Tensor,
        transform: Tensor,
        transform_bias: Tensor,
    ) -> Tensor:
        x = x.contiguous()
        gates, out = highway_gates(x, carry, carry_bias, transform, transform_bias)
        ctx.save_for_backward(x, carry, transform, gates)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, carry, transform, gates = ctx.saved_tensors
        c, t = gates.chunk(2, 1)
        dgates = torch.empty_like(gates)
        dcarry, dtransform = dgates.chunk(2, 1)
        torch.mul(dy * (t - x), c * (1 - c), out=dcarry)
        torch.mul(dy * c, t > 0, out=dtransform)
        dx = None
        if ctx.needs_input_grad[0]:
            dx = dy - dy * c
            dx += matmul(dcarry, carry.t())
            dx += matmul(dtransform, transform.t())
        dweights, dbiases = weight_gradient(x, dgates).chunk(2, 1), dgates.sum(0).chunk(2)
        return dx, dweights[0], dbiases[0], dweights[1], dbiases[1]

"""Matrix products, by the library that is fastest on the device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

ONEDNN = torch.backends.mkldnn.is_available()
# Below that, a product of float32 is bound by reading the matrix, and oneDNN's preparations cost more than they save.
FEWEST_ROWS = 4


def matmul_dtype(x: Tensor) -> torch.dtype:
    """Return the type in which `matmul` multiplies these numbers: their own, or under autocast that of autocast."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


def matmul(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply (n, k) @ (k, m) -> (n, m) of one type; under autocast, in its type. Differentiable.

    torch computes float32 products with MKL, which on AMD processors is half as fast as oneDNN: oneDNN chooses its
    kernels by the features of a processor, not by its vendor. torch computes bfloat16 products with oneDNN anyway.
    """
    device = x.device.type
    if torch.is_autocast_enabled(device):
        compute_dtype = torch.get_autocast_dtype(device)
        x, weight = x.to(compute_dtype), weight.to(compute_dtype)
    if not _by_onednn(x, weight):
        return x @ weight
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        return _Product.apply(x, weight)
    return _onednn(x, weight)


def _by_onednn(x: Tensor, weight: Tensor) -> bool:
    usual = x.is_cpu and x.dtype == torch.float32 and x.shape[0] >= FEWEST_ROWS
    return ONEDNN and usual and x.numel() > 0 and weight.numel() > 0


def _onednn(x: Tensor, weight: Tensor) -> Tensor:
    # What torch.compile uses for a linear layer; it takes the matrix as a layer holds it, (m, k).
    return torch.ops.mkldnn._linear_pointwise(x, weight.t(), None, "none", [], "")


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        with torch.autocast(
            dy.device.type, enabled=False
        ):  # the types are those of the forward pass
            dx = matmul(dy, weight.t()) if ctx.needs_input_grad[0] else None
            dweight = matmul(x.t(), dy) if ctx.needs_input_grad[1] else None
        return dx, dweight

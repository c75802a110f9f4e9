"""Max pooling over the positions of a convolution."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .native import address, native_function


def maximum(features: Tensor) -> Tensor:
    """Compute the maximum over one or more positions: (K, positions, n) -> (K, n).

    The gradient goes to the first position that has the maximum.
    """
    if not features.requires_grad:
        return features.amax(1)
    if native_function("maximum", features):
        return _Maximum.apply(features)
    return features.max(1).values


class _Maximum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor) -> Tensor:
        features = features.contiguous()
        words, ctx.positions, dim = features.shape
        maxima = features.new_empty((words, dim))
        winners = features.new_empty((words, dim), dtype=torch.int32)
        function = native_function("maximum", features)
        function(*features.shape, address(features), address(maxima), address(winners))
        ctx.save_for_backward(winners)
        return maxima

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (winners,) = ctx.saved_tensors
        words, dim = winners.shape
        gradient = gradient.contiguous()
        dfeatures = gradient.new_empty((words, ctx.positions, dim))
        function = native_function("spread", gradient)
        function(*dfeatures.shape, address(gradient), address(winners), address(dfeatures))
        return dfeatures

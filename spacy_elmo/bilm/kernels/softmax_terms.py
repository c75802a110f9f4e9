"""The expensive parts of a softmax layer: exponentials of logits, their sums, and dot products of rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .native import float32_function, functions


def softmax_terms(logits: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute e^(logit + bias - largest) for each logit, where `largest` is the maximum of logit + bias in
    the same row.

    Args:
        logits: (rows, classes), contiguous, of any float type. Logits can be -infinity. The tensor is
            overwritten.
        bias: (classes,) float32 or float64.

    Returns:
        Three tensors: the exponentials, (rows, classes), in the memory and data type of `logits`; the sum of
        the exponentials in each row, (rows,); and the logarithm of the sum of e^(logit + bias) in each row,
        (rows,). If all logits of a row are -infinity, this logarithm is -infinity.
    """
    usual = logits.is_cpu and bias.is_cpu and bias.dtype == torch.float32
    if usual and (function := functions("softmax_terms").get(logits.dtype)):
        bias = bias.contiguous()
        sums, log_sums = bias.new_empty((2, len(logits)))
        function(torch.get_num_threads(), *logits.shape, logits, bias, sums, log_sums)
        return logits, sums, log_sums
    raw = logits.to(bias.dtype) + bias
    largest = raw.amax(1).clamp_min_(torch.finfo(raw.dtype).min)
    sums = raw.sub_(largest[:, None]).exp_().sum(1)
    return logits.copy_(raw), sums, largest + sums.log()


def row_products(left: Tensor, right: Tensor) -> Tensor:
    """Compute the dot product of each row of `left`, (rows, width), and the same row of `right`, (rows,
    width). The result has the shape (rows,). Differentiable."""
    if float32_function("row_products", left, right):
        return _Products.apply(left, right)
    return (left * right).sum(1)


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        left, right = left.contiguous(), right.contiguous()
        sums = left.new_empty(len(left))
        float32_function("row_products")(torch.get_num_threads(), *left.shape, left, right, sums)
        ctx.save_for_backward(left, right)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dsums: Tensor) -> tuple[Tensor, Tensor]:
        left, right = ctx.saved_tensors
        return dsums[:, None] * right, dsums[:, None] * left

"""The head: the softmax layer of the language model, which computes losses and log-probabilities."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from .kernels.matmul import PrepackedWeight, matmul, matmul_dtype
from .kernels.native import functions, weight_gradient

# Largest number of logits in a block: 16 MB, which fit into caches, and which the allocator keeps.
_LOGITS_PER_BLOCK = 1 << 22
_ROWS_PER_BLOCK = 1024


class Head(nn.Module):
    """Softmax layer over the vocabulary: logits = h W^T + b, where h is an output of the top LSTM layer.

    Both directions share W and b (bilm-tf `training.py`). Each row of W belongs to one word.

    Args:
        words: V, the size of the vocabulary.
        width: P, the width of one direction's output.
    """

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(words, width))
        # A column, so that its sparse gradient in pretraining has rows like the gradient of the weight.
        self.bias = nn.Parameter(torch.empty(words, 1))
        self._packed: PrepackedWeight | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters as bilm-tf does: the weights are drawn from a normal distribution with
        variance 1 / width, and the bias is 0."""
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5)
        nn.init.zeros_(self.bias)

    @torch.no_grad()
    def prepare_for_inference(self) -> Head:
        """Return a copy of the layer for prediction only. Later changes of the parameters may have no effect
        on the copy."""
        other = copy.copy(self)
        other._packed = PrepackedWeight(self.weight.t(), torch.float32)
        return other

    @property
    def rows_per_block(self) -> int:
        """Number of predictions for which the full softmax computes logits at once."""
        return max(1, min(_ROWS_PER_BLOCK, _LOGITS_PER_BLOCK // len(self.weight)))

    def full_loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of each of M target words under the full softmax, in nats, (M,). The
        targets are processed in blocks to limit the memory.

        Args:
            hidden: (M, P) float, the outputs of the top LSTM layer, of width P, one for each target.
            targets: (M,) the vocabulary index of each target word.
        """
        rows = self.rows_per_block
        matrix = self._packed or PrepackedWeight(self.weight.detach().t(), matmul_dtype(hidden))
        losses = [
            LogSumExp.apply(block, self.weight, self.bias[:, 0], matrix, None)
            - row_products(block, F.embedding(block_targets, self.weight))
            - self.bias[block_targets, 0]
            for block, block_targets in zip(hidden.split(rows), targets.split(rows), strict=True)
        ]
        return torch.cat(losses) if losses else hidden.new_zeros(0)

    def log_softmax(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities of all V words of the vocabulary for M predictions, in nats, (M, V).

        Args:
            hidden: (M, P), a few outputs of the top LSTM layer; P: width.
        """
        weight = self.weight.t()
        logits = matmul(hidden, weight) if self._packed is None else self._packed(hidden)
        return log_softmax(logits.float() + self.bias[:, 0])


def log_softmax(scores: Tensor) -> Tensor:
    """Compute the log-softmax of each row of `scores`, a float32 matrix."""
    return scores - softmax_terms(scores.clone(), scores.new_zeros(scores.shape[1]))[2][:, None]


class LogSumExp(torch.autograd.Function):
    """Autograd function: the logarithm of the sum of e^logit in each row of the logits h W^T + b.

    The argument `hidden` is h, (M, P), and `weight` is W, (S, P), for M predictions, S words and width P.
    `matrix` is W^T, converted to the data type of the product h W^T. `hits` contains pairs of a row and a
    column, (pairs, 2). The sum leaves out the logits at these pairs.

    Autograd would process the (M, S) logits about ten times. This function overwrites the logits with their
    exponentials, and the backward pass uses these exponentials. The backward pass does not scale the
    exponentials: it scales the rows of `hidden` and of the gradient of `hidden`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        matrix: PrepackedWeight,
        hits: Tensor | None,
    ) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            logits = matrix(hidden.to(matrix.dtype))
            if hits is not None:
                logits[hits.unbind(1)] = -math.inf
            exponentials, sums, log_sums = softmax_terms(logits, bias.contiguous())
        ctx.save_for_backward(hidden, weight, exponentials, sums)
        return log_sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, exponentials, sums = ctx.saved_tensors
        scale = torch.where(sums > 0, gradient / sums, 0.0)[:, None]
        dweight = transposed_product(exponentials, torch.cat([hidden * scale, scale], 1))
        with torch.autocast(hidden.device.type, enabled=False):  # as in the forward pass
            dhidden = matmul(exponentials, weight.to(exponentials.dtype)).to(hidden.dtype) * scale
        return dhidden, dweight[:, :-1], dweight[:, -1], None, None


def transposed_product(terms: Tensor, rows: Tensor) -> Tensor:
    """Compute terms^T rows in the data type of `terms`, and return it in the data type of `rows`."""
    with torch.autocast(rows.device.type, enabled=False):
        if terms.dtype == torch.float32:
            return weight_gradient(terms, rows)
        # Lower precision is enough here, and torch uses the processor's matrix instructions.
        return (terms.t() @ rows.to(terms.dtype)).to(rows.dtype)


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
    if functions("row_products", left, right):
        return _Products.apply(left, right)
    return (left * right).sum(1)


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        left, right = left.contiguous(), right.contiguous()
        sums = left.new_empty(len(left))
        function = functions("row_products")[torch.float32]
        function(torch.get_num_threads(), *left.shape, left, right, sums)
        ctx.save_for_backward(left, right)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dsums: Tensor) -> tuple[Tensor, Tensor]:
        left, right = ctx.saved_tensors
        return dsums[:, None] * right, dsums[:, None] * left

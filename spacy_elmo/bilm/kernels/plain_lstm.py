"""One direction of one LSTM layer as a loop over time steps, in torch operators.

The formulas are from Sak et al. 2014, in the variant of TensorFlow's `LSTMCell`, which bilm-tf uses
(`model.py`, `training.py`):

    i, j, f, o = split(x W_x + h W_h + b)          j: the candidate
    c <- clip(σ(f + forget_bias) c + σ(i) tanh(j))
    h <- clip((σ(o) tanh(c)) W_p)                  without W_p: h <- σ(o) tanh(c), never clipped

The sequences of a batch are packed as in torch's `PackedSequence`, so padding is never computed. The products
x W_x of many time steps are computed as one product, and so is the gradient of each matrix. The rest of a
time step is two products and one pass over the gates (`cell`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from . import cell
from .prepacked import MatmulWeight, PlainWeight
from .weight_gradient import weight_gradient

_ROWS_PER_BLOCK = 512
MAX_KEPT_ROWS = 8192
"""Largest sum of sequence lengths for which all activations are kept for the backward pass. Larger batches
are divided into blocks of time steps, and the backward pass computes the activations in each block again."""


class Clips(NamedTuple):
    """Limits of the magnitudes of an LSTM's cell state and output; None: no limit."""

    cell: float | None
    out: float | None


class Direction(NamedTuple):
    """Weights and biases of one direction of an LSTM layer with output size P and cell state size C."""

    input: MatmulWeight
    """Input matrix W_x, (P, 4C), with the gates in the order i, j, f, o."""
    recurrent: MatmulWeight
    """Recurrent matrix W_h, (P, 4C)."""
    bias: Tensor
    """The bias, including the forget bias, (4C,)."""
    projection: MatmulWeight | None
    """Projection matrix W_p, (C, P); None: no projection."""
    clips: Clips

    def run(
        self, x: Tensor, h: Tensor, c: Tensor, batch_sizes: Sequence[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run this direction, with output size P and cell state size C, over B sequences, packed as in
        torch's `PackedSequence`. Differentiable if the matrices are instances of `PlainWeight`.

        Args:
            x: the inputs, (M, P), where M is the sum of the lengths of the sequences.
            h, c: the output (B, P) and the cell state (B, C) before the first time step. The longest sequence
                comes first. The tensors are not changed.
            batch_sizes: number of sequences that have a first, second, ... time step.

        Returns:
            The outputs, (M, P); and the output and the cell state after the last time step of each sequence,
            (B, P) and (B, C). No gradient flows back through the last two.
        """
        if torch.is_grad_enabled() and len(x) <= MAX_KEPT_ROWS:
            y, h, c = _advance(self, x, h, c, batch_sizes)
            return y, h.detach(), c.detach()
        outputs = []
        # The gates of one block of steps stay in the cache, and memory does not grow by 4C per row.
        for steps, part in blocks(batch_sizes):
            arguments = self, x[part], h, c, batch_sizes[steps]
            if torch.is_grad_enabled():
                y, h, c = checkpoint(
                    _advance, *arguments, use_reentrant=False, preserve_rng_state=False
                )
            else:
                y, h, c = _advance(*arguments)
            outputs.append(y)
        y = torch.cat(outputs) if outputs else torch.empty_like(x)
        return y, h.detach(), c.detach()


def blocks(batch_sizes: Sequence[int]) -> Iterator[tuple[slice, slice]]:
    """Divide packed sequences into blocks of time steps, with about 512 packed rows each. Yield, for each
    block, a slice of the time steps and a slice of the packed rows."""
    step = row = size = 0
    for end, n in enumerate(batch_sizes, 1):
        size += n
        if size >= _ROWS_PER_BLOCK or end == len(batch_sizes):
            yield slice(step, end), slice(row, row + size)
            step, row, size = end, row + size, 0


def _advance(
    direction: Direction, x: Tensor, h: Tensor, c: Tensor, batch_sizes: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute all time steps of `Direction.run` in one loop, without dividing the sequences into blocks."""
    matrix, recurrent, bias, projection, clips = direction
    sizes, first = list(batch_sizes), max(batch_sizes, default=0)
    inputs, shifts = matrix(x.to(matrix.dtype)), [None] * len(sizes)
    previous: list[Tensor] = []
    hiddens: list[Tensor] = []
    if torch.is_grad_enabled():
        assert isinstance(recurrent, PlainWeight)
        inputs = _Start.apply(inputs, recurrent.weight, previous)
        recurrent = PlainWeight(recurrent.weight.detach(), recurrent.dtype)
        if projection is not None:
            assert isinstance(projection, PlainWeight)
            zeros = torch.zeros_like(x, dtype=projection.dtype)
            shifts = _Start.apply(zeros, projection.weight, hiddens).split(sizes)
            projection = PlainWeight(projection.weight.detach(), projection.dtype)
    before, state, outputs = h[:first].to(recurrent.dtype), c[:first], []
    # The final states: those of sequences without a step, then those of sequences that have ended.
    ended = [(h[first:], c[first:])]
    for n, z, shift in zip(sizes, inputs.split(sizes), shifts, strict=True):
        if n < len(before):
            ended.append((before[n:].to(h.dtype), state[n:]))
            before, state = before[:n], state[:n]
        previous.append(before.detach())
        before, state = cell.forward(z, recurrent(before), bias, clips.cell, state)
        hiddens.append(before.detach())
        if projection is not None:
            before = projection(before)
            before = before if shift is None else before + shift
        if clips.out is not None:
            before = before.clamp(-clips.out, clips.out)
        outputs.append(before)
    ended.append((before.to(h.dtype), state))
    y = torch.cat(outputs).to(x.dtype) if outputs else torch.empty_like(x)
    last_h, last_c = (torch.cat(parts) for parts in zip(*reversed(ended), strict=True))
    return y, last_h, last_c


class _Start(torch.autograd.Function):
    """Autograd function that returns the tensor `start` unchanged. Its backward pass computes the gradient of
    the matrix `weight` as one product over all time steps, instead of one product per time step.

    At each time step, the caller multiplies a tensor by the detached `weight`, adds the product to a part of
    the returned tensor, and appends the multiplied tensor to the list `rows`.
    """

    @staticmethod
    def forward(ctx: Any, start: Tensor, weight: Tensor, rows: list[Tensor]) -> Tensor:
        ctx.rows = rows
        return start.view_as(start)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows = torch.cat(ctx.rows)
        dweight = weight_gradient(rows, gradient) if ctx.needs_input_grad[1] else None
        return gradient, dweight, None

"""Autograd function for one direction of an LSTM layer. The C functions in `fused_lstm` compute it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import fused_lstm
from .fused_lstm import Forward
from .panels import padded
from .plain_lstm import Clips, blocks
from .weight_gradient import weight_gradient

MAX_KEPT_ROWS = 8192
"""Largest sum of sequence lengths for which all activations are kept for the backward pass. Larger batches
are divided into blocks of time steps, and the backward pass computes the activations in each block again."""


class FusedLSTM(torch.autograd.Function):
    """Equivalent of `FusedDirection.run` as an autograd function. C functions compute both passes."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        input: Tensor,
        recurrent: Tensor,
        bias: Tensor,
        projection: Tensor | None,
        h: Tensor,
        c: Tensor,
        batch_sizes: list[int],
        clips: Clips,
        compute_dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run one direction over packed sequences. For x, h, c and `batch_sizes`, see
        `FusedDirection.run`, and for the other arguments `FusedDirection`."""
        weights = fused_lstm.pack_forward(input, recurrent, projection, compute_dtype)
        kept: list[Tensor | None] = []
        if len(x) <= MAX_KEPT_ROWS:
            result = fused_lstm.forward(weights, bias, clips, x, h, c, batch_sizes, keep=True)
            y, last_h, last_c = fused_lstm.narrowed(result.outputs, x.shape[1]), result.h, result.c
            kept = [h, c, *result]
        else:
            y, last_h, last_c = torch.empty_like(x), h, c
            for steps, part in blocks(batch_sizes):
                n = batch_sizes[steps.start]
                kept += [last_h[:n], last_c[:n]]
                result = fused_lstm.forward(
                    weights, bias, clips, x[part], last_h, last_c, batch_sizes[steps], keep=False
                )
                y[part] = result.outputs[:, : x.shape[1]]
                last_h, last_c = result.h, result.c
        ctx.save_for_backward(x, input, recurrent, bias, projection, *kept)
        ctx.batch_sizes, ctx.clips = batch_sizes, clips
        ctx.compute_dtype, ctx.sequences = compute_dtype, len(h)
        ctx.mark_non_differentiable(last_h, last_c)
        return y, last_h, last_c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, _dh: Tensor, _dc: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the arguments of `forward`."""
        with torch.autocast("cpu", enabled=False):  # the types are those of the forward pass
            return _backward(ctx, dy)


def _backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
    x, input, recurrent, bias, projection = ctx.saved_tensors[:5]
    width, dim = input.shape[0], len(bias) // 4
    weights = fused_lstm.pack_backward(input, recurrent, projection, ctx.compute_dtype)
    dx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
    dh = x.new_zeros((ctx.sequences, padded(width)))
    dc = x.new_zeros((ctx.sequences, padded(dim)))
    dbias = x.new_zeros(4 * dc.shape[1])
    dgates = dprojection = None
    for batch_sizes, part, first_cells, kept in _blocks(ctx):
        result = fused_lstm.backward(
            weights,
            ctx.clips,
            kept,
            first_cells,
            batch_sizes,
            dy[part],
            dh,
            dc,
            inputs=dx is not None,
        )
        if dx is not None and result.dx is not None:
            dx[part] = result.dx[:, :width]
        dbias += result.dbias
        dgates = weight_gradient(kept.xh, result.dgates, into=dgates)
        if projection is not None:
            dprojection = weight_gradient(kept.hiddens, result.doutputs, into=dprojection)
    if dgates is None:  # there are no steps
        dgates = x.new_zeros((2 * dh.shape[1], len(dbias)))
        dprojection = x.new_zeros((dc.shape[1], dh.shape[1]))
    by_gate = dgates.view(2, -1, 4, dc.shape[1])[:, :width, :, :dim]
    dinput, drecurrent = by_gate.reshape(2, width, 4 * dim)
    return (
        dx, dinput, drecurrent,
        dbias.view(4, -1)[:, :dim].reshape(-1),
        None if projection is None or dprojection is None else dprojection[:dim, :width],
        dh[:, :width] if ctx.needs_input_grad[5] else None,
        dc[:, :dim] if ctx.needs_input_grad[6] else None,
        None, None, None,
    )  # fmt: skip


def _blocks(ctx: Any) -> Iterator[tuple[Sequence[int], slice, Tensor, Forward]]:
    """Yield blocks of time steps, the last block first. If the forward pass kept the gates, all time steps
    are one block. If not, the forward pass of each block is computed again.

    Yields:
        For each block: the batch sizes, the slice of packed rows, the cell state before the block, and the
        results of the forward pass.
    """
    x, input, recurrent, bias, projection, *kept = ctx.saved_tensors
    if len(x) <= MAX_KEPT_ROWS:
        _, c, *result = kept
        yield ctx.batch_sizes, slice(0, len(x)), c, Forward(*result)
        return
    weights = fused_lstm.pack_forward(input, recurrent, projection, ctx.compute_dtype)
    states = zip(kept[::2], kept[1::2], strict=True)
    for (steps, part), (h, c) in reversed(list(zip(blocks(ctx.batch_sizes), states, strict=True))):
        batch_sizes = ctx.batch_sizes[steps]
        again = fused_lstm.forward(weights, bias, ctx.clips, x[part], h, c, batch_sizes, keep=True)
        yield batch_sizes, part, c, again

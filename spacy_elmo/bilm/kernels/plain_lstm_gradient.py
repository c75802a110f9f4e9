"""Autograd function for one LSTM layer in torch operators. It computes both directions at once.

The loops contain as few operations as possible, because on a GPU the start of an operation often takes longer
than the operation: everything that does not depend on the previous time step is computed outside the loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .plain_lstm import Clips

_sigmoid_backward, _tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


class PlainLSTM(torch.autograd.Function):
    """Equivalent of `plain_lstm.Direction.run` for training, for D directions at once.

    The first dimension of each tensor is the direction. The tensors have any float type and are on any device.

    All activations are kept for the backward pass: 5C numbers for each packed row and direction. If a GPU has too
    little memory, lower `batch_tokens` or raise `accumulate_gradient`.
    """

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
        batch_sizes: Sequence[int],
        clips: Clips,
        compute_dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run D directions over packed sequences. For x, h, c and `batch_sizes`, see
        `plain_lstm.Direction.run`. `compute_dtype` is the data type of the matrix products, and the other
        arguments are the fields of `plain_lstm.Direction`."""
        dim, dtype, first = bias.shape[1] // 4, compute_dtype, max(batch_sizes, default=0)
        weight = recurrent.to(dtype)
        last = None if projection is None else projection.to(dtype)
        gates = (x.to(dtype) @ input.to(dtype)) + bias[:, None]
        cells, y = x.new_empty((len(x), x.shape[1], dim)), torch.empty_like(x)
        before, state = h[:, :first].to(dtype), c[:, :first]
        # The final states: those of sequences without a step, then those of sequences that have ended.
        ended = [(h[:, first:], c[:, first:])]
        for rows in _steps(batch_sizes):
            n = rows.stop - rows.start
            if n < state.shape[1]:
                ended.append((before[:, n:].to(h.dtype), state[:, n:]))
                before, state = before[:, :n], state[:, :n]
            step = gates[:, rows].add_(before @ weight)
            i, j, f, o = step.chunk(4, 2)
            step[..., 2 * dim :].sigmoid_()
            state = torch.mul(f, state, out=cells[:, rows]).addcmul_(i.sigmoid_(), j.tanh_())
            if clips.cell is not None:
                state.clamp_(-clips.cell, clips.cell)
            before = (o * state.tanh()).to(dtype)
            if last is not None:
                before = before @ last
            if clips.out is not None:
                before = before.clamp(-clips.out, clips.out)
            y[:, rows] = before
        ended.append((before.to(h.dtype), state))
        last_h, last_c = (torch.cat(parts, 1) for parts in zip(*reversed(ended), strict=True))
        ctx.save_for_backward(x, input, recurrent, projection, h, c, gates, cells, y)
        ctx.batch_sizes, ctx.clips, ctx.dtype = batch_sizes, clips, dtype
        ctx.mark_non_differentiable(last_h, last_c)
        return y, last_h, last_c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, _dh: Tensor, _dc: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the arguments of `forward`."""
        # The types are those of the forward pass.
        with torch.autocast(dy.device.type, enabled=False):
            return _backward(ctx, dy)


def _backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
    x, input, recurrent, projection, h, c, gates, cells, y = ctx.saved_tensors
    clips, dtype = ctx.clips, ctx.dtype
    weight = recurrent.to(dtype).mT
    last = None if projection is None else projection.to(dtype).mT
    # Everything that does not depend on the gradient of later steps is computed for all steps at once.
    i, j, f, o = gates.chunk(4, 2)
    tanh = cells.tanh()
    to_cells = _tanh_backward(o, tanh)
    dgates = torch.stack(
        [
            _sigmoid_backward(j, i),
            _tanh_backward(i, j),
            _sigmoid_backward(_before(c, cells, ctx.batch_sizes), f),
            _sigmoid_backward(tanh, o),
        ],
        2,
    )
    open_cells = None if clips.cell is None else cells.abs() < clips.cell
    # The outputs were clipped in `dtype`, which can round the limit down.
    limit = None if clips.out is None else float(torch.tensor(clips.out, dtype=dtype))
    open_outputs = None if limit is None else y.abs() < limit
    doutputs = torch.empty_like(y, dtype=dtype)
    dh, dc = torch.zeros_like(h), torch.zeros_like(c)
    for rows in reversed(_steps(ctx.batch_sizes)):
        n = rows.stop - rows.start
        dh_, dc_, step = dh[:, :n], dc[:, :n], dgates[:, rows]
        dh_ += dy[:, rows]
        if open_outputs is not None:
            dh_ *= open_outputs[:, rows]
        dhidden = dh_
        if last is not None:
            dhidden = (doutputs[:, rows].copy_(dh_) @ last).to(dc.dtype)
        dc_.addcmul_(dhidden, to_cells[:, rows])
        if open_cells is not None:
            dc_ *= open_cells[:, rows]
        step[:, :, :3] *= dc_[:, :, None]
        step[:, :, 3] *= dhidden
        dc_ *= f[:, rows]
        if rows.start or ctx.needs_input_grad[5]:
            dh_.copy_(step.flatten(2).to(dtype) @ weight)
    dgates = dgates.flatten(2)
    dbias, dgates = dgates.sum(1), dgates.to(dtype)
    previous_h = _before(h, y, ctx.batch_sizes)
    return (
        (dgates @ input.to(dtype).mT).to(x.dtype) if ctx.needs_input_grad[0] else None,
        _weight_gradient(x, dgates),
        _weight_gradient(previous_h, dgates),
        dbias,
        None if projection is None else _weight_gradient(o * tanh, doutputs),
        dh if ctx.needs_input_grad[5] else None,
        dc if ctx.needs_input_grad[6] else None,
        None, None, None,
    )  # fmt: skip


def _steps(batch_sizes: Sequence[int]) -> list[slice]:
    """Return the packed rows of each time step."""
    ends = itertools.accumulate(batch_sizes)
    return [slice(end - n, end) for n, end in zip(batch_sizes, ends, strict=True)]


def _before(first: Tensor, later: Tensor, batch_sizes: Sequence[int]) -> Tensor:
    """Return the state before each time step, for the packed rows. `first` is the state before the first step,
    and `later` is the state after each step."""
    parts = [first[:, : max(batch_sizes, default=0)]]
    for rows, n in zip(_steps(batch_sizes), batch_sizes[1:], strict=False):
        parts.append(later[:, rows.start : rows.start + n])
    return torch.cat(parts, 1)


def _weight_gradient(left: Tensor, right: Tensor) -> Tensor:
    """Multiply the transpose of `left`, the inputs of a layer, by `right`, the gradient of the outputs."""
    return (left.to(right.dtype).mT @ right).to(left.dtype)

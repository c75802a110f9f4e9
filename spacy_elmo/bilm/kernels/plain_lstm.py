"""An LSTM layer as a loop over time steps in torch operators, for any device and float type.

The formulas are from Sak et al. 2014, in the variant of TensorFlow's `LSTMCell`, which bilm-tf uses
(`model.py`, `training.py`):

    i, j, f, o = split(x W_x + h W_h + b)          j: the candidate
    c <- clip(σ(f + forget_bias) c + σ(i) tanh(j))
    h <- clip((σ(o) tanh(c)) W_p)                  without W_p: h <- σ(o) tanh(c), never clipped

The sequences of a batch are packed as in torch's `PackedSequence`, so padding is never computed. All
directions of the layer are computed at once, because on a GPU the start of an operation often takes longer than
the operation. For the same reason, everything that does not depend on the previous time step is computed outside
the loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_ROWS_PER_BLOCK = 512

_sigmoid_backward, _tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


class Clips(NamedTuple):
    """Limits of the magnitudes of an LSTM's cell state and output; None: no limit."""

    cell: float | None
    out: float | None


class PlainDirections:
    """D directions of an LSTM layer for prediction, with matrices that are converted only once.

    Args:
        input: matrices W_x, (D, P, 4C), with the gates in the order i, j, f, o, for output size P and C cells.
        recurrent: matrices W_h, (D, P, 4C).
        bias: biases, including the forget bias, (D, 4C).
        projection: matrices W_p, (D, C, P); None: no projection.
        clips: limits of c and h.
        compute_dtype: data type of the matrix products.
    """

    def __init__(
        self,
        input: Tensor,
        recurrent: Tensor,
        bias: Tensor,
        projection: Tensor | None,
        clips: Clips,
        compute_dtype: torch.dtype,
    ) -> None:
        last = None if projection is None else projection.to(compute_dtype)
        self._weights = input.to(compute_dtype), recurrent.to(compute_dtype), bias, last
        self._clips, self._compute_dtype = clips, compute_dtype

    def run(
        self, x: Tensor, h: Tensor, c: Tensor, batch_sizes: Sequence[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run D directions, with output size P and C cells, over B sequences, packed as in torch's
        `PackedSequence`.

        Args:
            x: the inputs, (D, M, P), where M is the sum of the lengths of the sequences.
            h, c: the output (D, B, P) and the cell state (D, B, C) before the first time step. The longest
                sequence comes first. The tensors are not changed.
            batch_sizes: number of sequences that have a first, second, ... time step.

        Returns:
            The outputs, (D, M, P); and the output and the cell state after the last time step of each
            sequence, (D, B, P) and (D, B, C).
        """
        y = torch.empty_like(x)
        for steps, rows in blocks(batch_sizes):
            y[:, rows], h, c, *_ = _forward(
                x[:, rows],
                *self._weights,
                h,
                c,
                batch_sizes[steps],
                self._clips,
                self._compute_dtype,
            )
        return y, h, c


def blocks(batch_sizes: Sequence[int]) -> Iterator[tuple[slice, slice]]:
    """Divide packed sequences into blocks of time steps, with about 512 packed rows each, so that the gates of
    a block stay in the processor's cache. Yield, for each block, a slice of the time steps and a slice of the
    packed rows."""
    step = row = size = 0
    for end, n in enumerate(batch_sizes, 1):
        size += n
        if size >= _ROWS_PER_BLOCK or end == len(batch_sizes):
            yield slice(step, end), slice(row, row + size)
            step, row, size = end, row + size, 0


class PlainLSTM(torch.autograd.Function):
    """Equivalent of `PlainDirections.run` for training.

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
        """Run D directions over packed sequences. For the arguments, see `PlainDirections`."""
        y, last_h, last_c, gates, cells = _forward(
            x, input, recurrent, bias, projection, h, c, batch_sizes, clips, compute_dtype
        )
        ctx.save_for_backward(x, input, recurrent, projection, h, c, gates, cells, y)
        ctx.batch_sizes, ctx.clips, ctx.dtype = batch_sizes, clips, compute_dtype
        ctx.mark_non_differentiable(last_h, last_c)
        return y, last_h, last_c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, _dh: Tensor, _dc: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the arguments of `forward`."""
        # The types are those of the forward pass.
        with torch.autocast(dy.device.type, enabled=False):
            return _backward(ctx, dy)


def _forward(
    x: Tensor,
    input: Tensor,
    recurrent: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    h: Tensor,
    c: Tensor,
    batch_sizes: Sequence[int],
    clips: Clips,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Compute the results of `PlainDirections.run`, the gates after their activations, (D, M, 4C), and the cell
    state after each time step, (D, M, C)."""
    dim, first = bias.shape[1] // 4, max(batch_sizes, default=0)
    weight = recurrent.to(dtype)
    last = None if projection is None else projection.to(dtype)
    gates = (x.to(dtype) @ input.to(dtype)) + bias[:, None]
    cells, y = c.new_empty((len(x), x.shape[1], dim)), torch.empty_like(x)
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
    return y, last_h, last_c, gates, cells


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

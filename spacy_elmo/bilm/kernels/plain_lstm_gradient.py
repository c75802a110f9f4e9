"""The backward pass of the LSTM, by hand: about twice as fast as autograd over the steps.

It keeps the gate gradients of many steps and forms the gradient of each weight in one product. For long inputs the
activated gates, the largest part, are not stored but computed again, block by block, from the stored h and c.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import cell
from .matmul import matmul
from .plain_lstm import MAX_KEPT_ROWS, Clips, Direction, advance, blocks, run
from .prepacked import PlainWeight


class PlainLSTM(torch.autograd.Function):
    """`plain_lstm.run` with a graph. No gradient flows out of the state that it returns."""

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
        """Arguments as of `run`; the matrices are multiplied in the type `compute_dtype`."""
        input, recurrent = input.to(compute_dtype), recurrent.to(compute_dtype)
        projection = None if projection is None else projection.to(compute_dtype)
        last = None if projection is None else PlainWeight(projection, compute_dtype)
        direction = Direction(
            PlainWeight(input, compute_dtype),
            PlainWeight(recurrent, compute_dtype),
            bias,
            last,
            clips,
        )
        h, c = h.contiguous(), c.contiguous()
        cells = x.new_empty((len(x), c.shape[1]))
        gates = hiddens = None
        if len(x) <= MAX_KEPT_ROWS:
            gates = x.new_empty((len(x), 4 * c.shape[1]), dtype=compute_dtype)
            hiddens = torch.empty_like(cells, dtype=compute_dtype)
            y, last_h, last_c = torch.empty_like(x), h.clone(), c.clone()
            advance(
                direction.input(x.to(compute_dtype)), batch_sizes, direction, last_h, last_c, y,
                hiddens.split(batch_sizes), gates.split(batch_sizes), cells.split(batch_sizes),
            )  # fmt: skip
        else:
            y, last_h, last_c = run(x, direction, h, c, batch_sizes, cells)
        ctx.save_for_backward(x, input, recurrent, bias, projection, h, c, cells, y, gates, hiddens)
        ctx.batch_sizes, ctx.clips = batch_sizes, clips
        ctx.mark_non_differentiable(last_h, last_c)
        return y, last_h, last_c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, _dh: Tensor, _dc: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the arguments of `forward`."""
        with torch.autocast(
            dy.device.type, enabled=False
        ):  # the types are those of the forward pass
            return _backward(ctx, dy)


class _Steps(NamedTuple):
    """Activations of some steps, m packed rows, that the backward pass uses."""

    batch_sizes: Sequence[int]
    part: slice
    gates: Tensor
    """(m, 4C) after their activations."""
    hiddens: Tensor
    """(m, C) σ(o) tanh(c)."""
    before: list[Tensor]
    """For each step, (n, C) c before it."""
    previous: Tensor
    """(m, P) h before the step of each row, in the type of the products."""


def _backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
    x, input, recurrent, _, projection, h0, c0, cells, y = ctx.saved_tensors[:9]
    clips, compute_dtype = ctx.clips, recurrent.dtype
    dx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
    dinput, drecurrent = (torch.zeros_like(weight, dtype=x.dtype) for weight in (input, recurrent))
    dprojection = None if projection is None else torch.zeros_like(projection, dtype=x.dtype)
    dbias, dc = x.new_zeros(input.shape[1]), torch.zeros_like(c0)
    dh = x.new_zeros((0, x.shape[1]), dtype=compute_dtype)
    for steps in _steps(ctx):
        part, sizes = steps.part, list(steps.batch_sizes)
        dgates = torch.empty_like(steps.gates)
        douts = torch.empty_like(y[part], dtype=compute_dtype)
        # Few outputs are ever clipped, and mostly none.
        clipped = None if clips.out is None else y[part].abs() >= clips.out
        clipped = clipped if clipped is not None and clipped.any() else None
        parts = zip(
            sizes, dy[part].split(sizes), douts.split(sizes), steps.gates.split(sizes),
            cells[part].split(sizes), steps.before, dgates.split(sizes),
            [None] * len(sizes) if clipped is None else clipped.split(sizes), strict=True,
        )  # fmt: skip
        for n, given, dout, gate, state, before, dgate, cut in reversed(list(parts)):
            if (later := dh.shape[0]) == n:
                torch.add(given, dh, out=dout)
            else:
                torch.add(given[:later], dh, out=dout[:later])
                dout[later:] = given[later:]
            if cut is not None:
                dout.masked_fill_(cut, 0.0)
            dhidden = dout if projection is None else matmul(dout, projection.t())
            cell.backward(gate, state, before, dhidden, clips.cell, dc[:n], dgate, dbias)
            dh = matmul(dgate, recurrent.t())
        if dx is not None:
            dx[part] = matmul(dgates, input.t())
        dinput += matmul(x[part].to(compute_dtype).t(), dgates)
        drecurrent += matmul(steps.previous.t(), dgates)
        if dprojection is not None:
            dprojection += matmul(steps.hiddens.t(), douts)
    dh0 = torch.zeros_like(h0)
    dh0[: dh.shape[0]] = dh
    return (
        dx, dinput, drecurrent, dbias, dprojection,
        dh0 if ctx.needs_input_grad[5] else None,
        dc if ctx.needs_input_grad[6] else None,
        None, None, None,
    )  # fmt: skip


def _steps(ctx: Any) -> Iterator[_Steps]:
    """Yield all steps, the last first: together if their gates were kept, otherwise block by block."""
    x, input, recurrent, bias, _, h0, c0, cells, y, gates, hiddens = ctx.saved_tensors
    batch_sizes, compute_dtype = ctx.batch_sizes, recurrent.dtype
    states = [c0, *cells.split(batch_sizes)]
    before = [state[:n] for state, n in zip(states, batch_sizes, strict=False)]
    previous = torch.cat(
        [h0[: max(batch_sizes, default=0)], y[_step_before(batch_sizes, y.device)]]
    ).to(compute_dtype)
    if gates is not None:
        yield _Steps(batch_sizes, slice(0, len(x)), gates, hiddens, before, previous)
        return
    for steps, part in reversed(list(blocks(batch_sizes))):
        again = matmul(x[part].to(compute_dtype), input), matmul(previous[part], recurrent)
        gates, hiddens = (
            torch.empty_like(again[0]),
            torch.empty_like(cells[part], dtype=compute_dtype),
        )
        c = torch.cat(before[steps])
        cell.forward(*again, bias, ctx.clips.cell, c, hiddens, gates, torch.empty_like(c))
        yield _Steps(batch_sizes[steps], part, gates, hiddens, before[steps], previous[part])


def _step_before(batch_sizes: list[int], device: torch.device) -> Tensor:
    """Return, for each packed row after step 0, the row of the same sequence one step earlier."""
    starts = itertools.accumulate(batch_sizes, initial=0)
    before = [
        torch.arange(start, start + n) for start, n in zip(starts, batch_sizes[1:], strict=False)
    ]
    return torch.cat([torch.arange(0), *before]).to(device)

"""The hot loop: one layer of the biLM's LSTM, both directions at once, forward and hand-written backward.

The cell is TensorFlow's `LSTMCell` as bilm-tf uses it (`model.py`, `training.py`), of Sak et al. 2014:

    i, j, f, o = split(x W_x + h W_h + b)          j: the candidate
    c <- clip(σ(f + forget_bias) c + σ(i) tanh(j))
    h <- clip((σ(o) tanh(c)) W_p)                  without W_p: h <- σ(o) tanh(c), never clipped

Four things make it fast, and none changes a result: rows are packed, so that padding is never computed; the input half
x W_x of many steps is one product; the rest of a step is two products and one pass over the gates (`cell`); a direction
reads to its end before the other begins, so that its matrices stay in the cache. The backward pass keeps the gate
gradients of all steps, and forms every weight gradient in one product at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from . import cell
from .config import BiLMConfig
from .products import product

_ROWS_PER_BLOCK = 512


class LSTMLayer(nn.Module):
    """One layer, both directions. Direction 0 reads forward, direction 1 backward.

    Parameters hold the two directions along their first dimension and multiply from the right; gates lie
    in TensorFlow's order i, j, f, o.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        dim, width = config.dim, config.projection
        self.forget_bias = config.forget_bias
        self.cell_clip = config.cell_clip
        self.proj_clip = config.proj_clip
        self.input = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.recurrent = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.bias = nn.Parameter(torch.empty(2, 4 * dim))
        wanted = dim != width or config.square_projections
        self.projection = nn.Parameter(torch.empty(2, dim, width)) if wanted else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """TensorFlow's default start of bilm-tf: Glorot over the whole kernel [x ; h], bias 0."""
        rows, columns = 2 * self.input.shape[1], self.input.shape[2]
        bound = (6 / (rows + columns)) ** 0.5
        nn.init.uniform_(self.input, -bound, bound)
        nn.init.uniform_(self.recurrent, -bound, bound)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            bound = (6 / sum(self.projection.shape[1:])) ** 0.5
            nn.init.uniform_(self.projection, -bound, bound)

    def forward(
        self, x: Tensor, rows: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Read packed sequences (see `Packing`).

        Under `torch.autocast` the matrix products take its type; states, gates and sums stay as they are.

        Args:
            x: (2, M, P) what each direction reads.
            rows: sequences still read at each step; they sum to M.
            h, c: (2, B, P) and (2, B, C), the state before the first step, by rank. Not changed.

        Returns:
            (2, M, P) the outputs, and the state after each sequence's last step. No gradient flows
            out of a returned state: every system cuts it there.
        """
        device = x.device.type
        low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        dim = c.shape[2]
        bias = self.bias.clone()
        bias[:, 2 * dim : 3 * dim] += self.forget_bias
        clips = _Clips(self.cell_clip, self.proj_clip if self.projection is not None else None)
        weights = (self.input, self.recurrent, bias, self.projection)
        with torch.autocast(device, enabled=False):
            if torch.is_grad_enabled() and any(
                w is not None and w.requires_grad for w in (x, *weights)
            ):
                return _Read.apply(x, *weights, h, c, rows, clips, low)
            return _read(x, *weights, h.clone(), c.clone(), rows, clips, low)


class _Clips(NamedTuple):
    cell: float | None
    out: float | None


def _read(
    x: Tensor,
    input: Tensor,
    recurrent: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    h: Tensor,
    c: Tensor,
    rows: list[int],
    clips: _Clips,
    low: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """`LSTMLayer.forward` without a graph; `h` and `c` are changed."""
    y = torch.empty_like(x)
    input, recurrent, projections = _lower(low, input, recurrent, projection)
    room = x.new_empty((max(rows, default=0), c.shape[2]), dtype=low)
    start, block = 0, []
    # Gates of a block of steps at a time: they stay in the cache, and memory does not grow by 4C per row.
    for step, n in enumerate(rows):
        block.append(n)
        if sum(block) >= _ROWS_PER_BLOCK or step == len(rows) - 1:
            part = slice(start, start + sum(block))
            hiddens = [room[:n] for n in block]
            for d in (0, 1):
                inputs = product(x[d, part].to(low), input[d])
                _advance(
                    inputs,
                    block,
                    recurrent[d],
                    bias[d],
                    projections[d],
                    h[d],
                    c[d],
                    y[d, part],
                    clips,
                    hiddens,
                )
            start, block = part.stop, []
    return y, h, c


def _lower(
    low: torch.dtype, input: Tensor, recurrent: Tensor, projection: Tensor | None
) -> tuple[Tensor, Tensor, Sequence[Tensor | None]]:
    projections = (None, None) if projection is None else projection.to(low).unbind()
    return input.to(low), recurrent.to(low), projections


def _advance(
    inputs: Tensor,
    rows: list[int],
    recurrent: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    h: Tensor,
    c: Tensor,
    y: Tensor,
    clips: _Clips,
    hiddens: Sequence[Tensor],
    gates: Tensor | None = None,
    cells: Tensor | None = None,
) -> None:
    """Take the steps of `rows` in one direction.

    Args:
        inputs: (M, 4C) x W_x.
        h, c: (B, ·), changed.
        y: (M, P), written.
        hiddens: for each step, (n, C) of room for σ(o) tanh(c).
        gates, cells: (M, ·), written: what the backward pass needs.
    """
    nothing = [None] * len(rows)
    steps = zip(
        rows, inputs.split(rows), y.split(rows), hiddens,
        nothing if gates is None else gates.split(rows),
        nothing if cells is None else cells.split(rows),
        strict=True,
    )  # fmt: skip
    first = max(rows, default=0)
    before, c = h[:first].to(recurrent.dtype), c[:first]
    for n, z, out, hidden, gate, state in steps:
        if n < len(before):
            h[n : len(before)] = before[n:]
            before, c = before[:n], c[:n]
        cell.forward(z, product(before, recurrent), bias, clips.cell, c, hidden, gate, state)
        before = hidden if projection is None else product(hidden, projection)
        if clips.out is not None:
            before.clamp_(-clips.out, clips.out)
        out.copy_(before)
    h[: len(before)] = before


class _Read(torch.autograd.Function):
    """`LSTMLayer.forward` with a graph: about twice as fast as autograd over the steps."""

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
        rows: list[int],
        clips: _Clips,
        low: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:
        input, recurrent, projections = _lower(low, input, recurrent, projection)
        cells = x.new_empty((2, x.shape[1], c.shape[2]))
        gates = x.new_empty((2, x.shape[1], 4 * c.shape[2]))
        hiddens = torch.empty_like(cells, dtype=low)
        y = torch.empty_like(x)
        last_h, last_c = h.clone(), c.clone()
        for d in (0, 1):
            inputs = product(x[d].to(low), input[d])
            _advance(
                inputs, rows, recurrent[d], bias[d], projections[d], last_h[d], last_c[d], y[d], clips,
                hiddens[d].split(rows), gates[d], cells[d],
            )  # fmt: skip
        ctx.save_for_backward(x, input, recurrent, projection, h, c, gates, cells, hiddens, y)
        ctx.rows, ctx.clips = rows, clips
        ctx.mark_non_differentiable(last_h, last_c)
        return y, last_h, last_c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, _dh: Tensor, _dc: Tensor) -> tuple[Tensor | None, ...]:
        x, input, recurrent, projection, h0, c0, gates, cells, hiddens, y = ctx.saved_tensors
        rows, clips, low = ctx.rows, ctx.clips, recurrent.dtype
        dx, dh0, dc = torch.empty_like(x), torch.zeros_like(h0), torch.zeros_like(c0)
        dinput, drecurrent = (torch.empty_like(w, dtype=x.dtype) for w in (input, recurrent))
        dbias = x.new_zeros((2, gates.shape[2]))
        dprojection = None if projection is None else torch.empty_like(projection)
        douts, dgates = (torch.empty_like(t[0], dtype=low) for t in (y, gates))
        # Few outputs are ever clipped, and mostly none.
        clipped = None if clips.out is None else y.abs() >= clips.out
        clipped = clipped if clipped is not None and clipped.any() else None
        earlier = _step_before(rows, y.device)
        for d in (0, 1):
            back = None if projection is None else projection[d].to(low).t()
            states = [c0[d], *cells[d].split(rows)]
            steps = zip(
                rows, dy[d].split(rows), douts.split(rows), gates[d].split(rows), states[1:], states[:-1],
                dgates.split(rows), [None] * len(rows) if clipped is None else clipped[d].split(rows),
                strict=True,
            )  # fmt: skip
            dh = x.new_zeros((0, x.shape[2]), dtype=low)
            for n, given, dout, gate, state, before, dgate, cut in reversed(list(steps)):
                if (later := len(dh)) == n:
                    torch.add(given, dh, out=dout)
                else:
                    torch.add(given[:later], dh, out=dout[:later])
                    dout[later:] = given[later:]
                if cut is not None:
                    dout.masked_fill_(cut, 0.0)
                dhidden = dout if back is None else product(dout, back)
                cell.backward(
                    gate, state, before[:n], dhidden, clips.cell, dc[d, :n], dgate, dbias[d]
                )
                dh = product(dgate, recurrent[d].t())
            dh0[d, : len(dh)] = dh
            if ctx.needs_input_grad[0]:
                dx[d] = product(dgates, input[d].t())
            dinput[d] = product(x[d].to(low).t(), dgates)
            previous = torch.cat([h0[d], y[d, earlier]]).to(low)
            drecurrent[d] = product(previous.t(), dgates)
            if dprojection is not None:
                dprojection[d] = product(hiddens[d].t(), douts)
        return (
            dx if ctx.needs_input_grad[0] else None,
            dinput,
            drecurrent,
            dbias,
            dprojection,
            dh0 if ctx.needs_input_grad[5] else None,
            dc if ctx.needs_input_grad[6] else None,
            None,
            None,
            None,
        )


def _step_before(rows: list[int], device: torch.device) -> Tensor:
    """The packed row, one step before, of every row that is not of the first step."""
    starts = itertools.accumulate(rows, initial=0)
    found = [torch.arange(start, start + n) for start, n in zip(starts, rows[1:], strict=False)]
    return torch.cat([torch.arange(0), *found]).to(device)

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
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from . import cell
from .config import BiLMConfig
from .matrices import Matrix, Plain, Precision, ready
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
        with torch.autocast(device, enabled=False):
            if torch.is_grad_enabled() and any(
                t.requires_grad for t in (x, h, c, *self.parameters())
            ):
                parts = zip(*self._parameters_by_direction(), strict=True)
                found = [
                    _Read.apply(x_, *own, h_, c_, rows, self._clips, low)
                    for x_, own, h_, c_ in zip(x, parts, h, c, strict=True)
                ]
                return _both(found)
            return _read_both(x, self._directions(lambda weight: Plain(weight, low)), rows, h, c)

    def ready(self, precision: Precision) -> ReadyLayer:
        """The layer for prediction, its matrices made ready once. Later changes of the parameters may not show.

        Raises:
            ValueError: see `matrices.ready`.
        """
        with torch.no_grad():
            return ReadyLayer(self._directions(lambda weight: ready(weight, precision)))

    @property
    def _clips(self) -> _Clips:
        return _Clips(self.cell_clip, self.proj_clip if self.projection is not None else None)

    def _parameters_by_direction(self) -> Iterator[Sequence[Tensor | None]]:
        """Input, recurrent, bias with the forget bias in it, and projection: a pair of each."""
        dim = self.bias.shape[1] // 4
        bias = self.bias.clone()
        bias[:, 2 * dim : 3 * dim] += self.forget_bias
        for pair in (self.input, self.recurrent, bias, self.projection):
            yield (None, None) if pair is None else pair.unbind()

    def _directions(self, matrix: Callable[[Tensor], Matrix]) -> list[_Direction]:
        found: list[_Direction] = []
        for input, recurrent, bias, projection in zip(
            *self._parameters_by_direction(), strict=True
        ):
            assert input is not None and recurrent is not None and bias is not None
            last = None if projection is None else matrix(projection)
            found.append(_Direction(matrix(input), matrix(recurrent), bias, last, self._clips))
        return found


class ReadyLayer(nn.Module):
    """An `LSTMLayer` for prediction alone: it has no parameters, and nothing that it returns has a graph."""

    def __init__(self, directions: Sequence[_Direction]) -> None:
        super().__init__()
        self._directions = directions

    @torch.no_grad()
    def forward(
        self, x: Tensor, rows: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `LSTMLayer.forward`."""
        return _read_both(x, self._directions, rows, h, c)


class _Clips(NamedTuple):
    cell: float | None
    out: float | None


class _Direction(NamedTuple):
    input: Matrix
    recurrent: Matrix
    bias: Tensor
    projection: Matrix | None
    clips: _Clips


def _read_both(
    x: Tensor, directions: Sequence[_Direction], rows: list[int], h: Tensor, c: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return _both([_read(*parts, rows) for parts in zip(x, directions, h, c, strict=True)])


def _both(found: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    y, h, c = (torch.stack(pair) for pair in zip(*found, strict=True))
    return y, h, c


def _read(
    x: Tensor, direction: _Direction, h: Tensor, c: Tensor, rows: list[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """One direction of `LSTMLayer.forward`, without a graph."""
    low = direction.recurrent.dtype
    y, h, c = torch.empty_like(x), *(t.clone(memory_format=torch.contiguous_format) for t in (h, c))
    room = x.new_empty((max(rows, default=0), c.shape[1]), dtype=low)
    start, block = 0, []
    # Gates of a block of steps at a time: they stay in the cache, and memory does not grow by 4C per row.
    for step, n in enumerate(rows):
        block.append(n)
        if sum(block) >= _ROWS_PER_BLOCK or step == len(rows) - 1:
            part = slice(start, start + sum(block))
            inputs = direction.input(x[part].to(low))
            hiddens = [room[:n] for n in block]
            _advance(inputs, block, direction, h, c, y[part], hiddens)
            start, block = part.stop, []
    return y, h, c


def _advance(
    inputs: Tensor,
    rows: list[int],
    direction: _Direction,
    h: Tensor,
    c: Tensor,
    y: Tensor,
    hiddens: Sequence[Tensor],
    gates: Tensor | None = None,
    cells: Tensor | None = None,
) -> None:
    """Take the steps of `rows`.

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
    _, recurrent, bias, projection, clips = direction
    before, c = h[:first].to(recurrent.dtype), c[:first]
    for n, z, out, hidden, gate, state in steps:
        if n < len(before):
            h[n : len(before)] = before[n:]
            before, c = before[:n], c[:n]
        cell.forward(z, recurrent(before), bias, clips.cell, c, hidden, gate, state)
        before = hidden if projection is None else projection(hidden)
        if clips.out is not None:
            before.clamp_(-clips.out, clips.out)
        out.copy_(before)
    h[: len(before)] = before


class _Read(torch.autograd.Function):
    """`_read` with a graph: about twice as fast as autograd over the steps."""

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
        input, recurrent = input.to(low), recurrent.to(low)
        projection = None if projection is None else projection.to(low)
        last = None if projection is None else Plain(projection, low)
        direction = _Direction(Plain(input, low), Plain(recurrent, low), bias, last, clips)
        h, c = h.contiguous(), c.contiguous()
        cells = x.new_empty((len(x), c.shape[1]))
        gates = x.new_empty((len(x), 4 * c.shape[1]), dtype=low)
        hiddens = torch.empty_like(cells, dtype=low)
        y, last_h, last_c = torch.empty_like(x), h.clone(), c.clone()
        _advance(
            direction.input(x.to(low)), rows, direction, last_h, last_c, y,
            hiddens.split(rows), gates, cells,
        )  # fmt: skip
        ctx.save_for_backward(x, input, recurrent, projection, h, c, gates, cells, hiddens, y)
        ctx.rows, ctx.clips = rows, clips
        ctx.mark_non_differentiable(last_h, last_c)
        return y, last_h, last_c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, _dh: Tensor, _dc: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(
            dy.device.type, enabled=False
        ):  # the types are those of the forward pass
            return _Read._backward(ctx, dy)

    @staticmethod
    def _backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, input, recurrent, projection, h0, c0, gates, cells, hiddens, y = ctx.saved_tensors
        rows, clips, low = ctx.rows, ctx.clips, recurrent.dtype
        dc, dbias = torch.zeros_like(c0), x.new_zeros(gates.shape[1])
        douts, dgates = torch.empty_like(y, dtype=low), torch.empty_like(gates)
        # Few outputs are ever clipped, and mostly none.
        clipped = None if clips.out is None else y.abs() >= clips.out
        clipped = clipped if clipped is not None and clipped.any() else None
        states = [c0, *cells.split(rows)]
        steps = zip(
            rows, dy.split(rows), douts.split(rows), gates.split(rows), states[1:], states[:-1],
            dgates.split(rows), [None] * len(rows) if clipped is None else clipped.split(rows),
            strict=True,
        )  # fmt: skip
        dh = x.new_zeros((0, x.shape[1]), dtype=low)
        for n, given, dout, gate, state, before, dgate, cut in reversed(list(steps)):
            if (later := len(dh)) == n:
                torch.add(given, dh, out=dout)
            else:
                torch.add(given[:later], dh, out=dout[:later])
                dout[later:] = given[later:]
            if cut is not None:
                dout.masked_fill_(cut, 0.0)
            dhidden = dout if projection is None else product(dout, projection.t())
            cell.backward(gate, state, before[:n], dhidden, clips.cell, dc[:n], dgate, dbias)
            dh = product(dgate, recurrent.t())
        dh0 = torch.zeros_like(h0)
        dh0[: len(dh)] = dh
        previous = torch.cat([h0, y[_step_before(rows, y.device)]]).to(low)
        return (
            product(dgates, input.t()).to(x.dtype) if ctx.needs_input_grad[0] else None,
            product(x.to(low).t(), dgates).to(x.dtype),
            product(previous.t(), dgates).to(x.dtype),
            dbias,
            None if projection is None else product(hiddens.t(), douts).to(x.dtype),
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

"""The hot loop: one layer of the biLM's LSTM, both directions at once, forward and hand-written backward.

The cell is TensorFlow's `LSTMCell` as bilm-tf uses it (`model.py`, `training.py`), of Sak et al. 2014:

    i, j, f, o = split(x W_x + h W_h + b)          j: the candidate
    c <- clip(σ(f + forget_bias) c + σ(i) tanh(j))
    h <- clip((σ(o) tanh(c)) W_p)                  without W_p: h <- σ(o) tanh(c), never clipped

Four things make it fast, and none changes a result: rows are packed, so that padding is never
computed; the input half x W_x of many steps is one product; both directions advance in the
same step; gates are overwritten in place. The backward pass keeps the gate gradients of all steps
where the gates were, and forms every weight gradient in one product at the end.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .config import BiLMConfig

_ROWS_PER_BLOCK = 512

_sigmoid_gradient = torch.ops.aten.sigmoid_backward.grad_input
_tanh_gradient = torch.ops.aten.tanh_backward.grad_input


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
        self.projection = nn.Parameter(torch.empty(2, dim, width)) if dim != width else None
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
    input, recurrent, projection = _lower(low, input, recurrent, projection)
    start, block = 0, []
    # Gates of a block of steps at a time: they stay in the cache, and memory does not grow by 4C per row.
    for step, n in enumerate(rows):
        block.append(n)
        if sum(block) >= _ROWS_PER_BLOCK or step == len(rows) - 1:
            part = slice(start, start + sum(block))
            gates = _affine(x[:, part], input, bias)
            _advance(gates, block, recurrent, projection, h, c, y[:, part], clips)
            start, block = part.stop, []
    return y, h, c


def _lower(low: torch.dtype, *tensors: Tensor | None) -> tuple[Any, ...]:
    return tuple(tensor if tensor is None else tensor.to(low) for tensor in tensors)


def _affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if weight.dtype == x.dtype:
        return torch.baddbmm(bias[:, None], x, weight)
    return torch.bmm(x.to(weight.dtype), weight).to(x.dtype).add_(bias[:, None])


def _advance(
    gates: Tensor,
    rows: list[int],
    recurrent: Tensor,
    projection: Tensor | None,
    h: Tensor,
    c: Tensor,
    y: Tensor,
    clips: _Clips,
    cells: Tensor | None = None,
    hiddens: Tensor | None = None,
) -> None:
    """Take the steps of `rows`, in place.

    `gates` holds x W_x + b and is left with the activated gates; `h`, `c` (2, B, ·) move on; `y` receives
    the outputs. `cells` and `hiddens` (2, M, C), if given, receive c and σ(o) tanh(c) of every row, for the
    backward pass.
    """
    dim, low = c.shape[2], recurrent.dtype
    start = 0
    for n in rows:
        z, out = gates[:, start : start + n], y[:, start : start + n]
        for direction in (0, 1):
            if low == z.dtype:
                z[direction].addmm_(h[direction, :n], recurrent[direction])
            else:
                z[direction].add_(h[direction, :n].to(low) @ recurrent[direction])
        i, j, fo = (
            z[..., :dim].sigmoid_(),
            z[..., dim : 2 * dim].tanh_(),
            z[..., 2 * dim :].sigmoid_(),
        )
        cell = c[:, :n].mul_(fo[..., :dim]).addcmul_(i, j)
        if clips.cell is not None:
            cell.clamp_(-clips.cell, clips.cell)
        hidden = cell.tanh().mul_(fo[..., dim:])
        if cells is not None and hiddens is not None:
            cells[:, start : start + n] = cell
            hiddens[:, start : start + n] = hidden
        for direction in (0, 1):
            if projection is None:
                out[direction].copy_(hidden[direction])
            else:
                out[direction].copy_(hidden[direction].to(low) @ projection[direction])
        if clips.out is not None:
            out.clamp_(-clips.out, clips.out)
        h[:, :n] = out
        start += n


class _Read(torch.autograd.Function):
    """`LSTMLayer.forward` with a graph: about twice as fast as autograd over the steps.

    The backward pass overwrites what the forward pass saved, so a graph can be walked once; torch says so if it is
    tried again.
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
        rows: list[int],
        clips: _Clips,
        low: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:
        input, recurrent, projection = _lower(low, input, recurrent, projection)
        gates = _affine(x, input, bias)
        cells = x.new_empty((2, x.shape[1], c.shape[2]))
        hiddens = cells.new_empty(cells.shape, dtype=low)
        y = torch.empty_like(x)
        last_h, last_c = h.clone(), c.clone()
        _advance(gates, rows, recurrent, projection, last_h, last_c, y, clips, cells, hiddens)
        ctx.save_for_backward(x, input, recurrent, projection, h, c, gates, cells, hiddens, y)
        ctx.rows, ctx.clips = rows, clips
        ctx.mark_non_differentiable(last_h, last_c)
        return y, last_h, last_c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, _dh: Tensor, _dc: Tensor) -> tuple[Tensor | None, ...]:
        x, input, recurrent, projection, h0, c0, gates, cells, hiddens, y = ctx.saved_tensors
        dim, low = c0.shape[2], recurrent.dtype
        recurrent_t = recurrent.transpose(1, 2)
        projection_t = None if projection is None else projection.transpose(1, 2)
        dh, dc = torch.zeros_like(h0), torch.zeros_like(c0)
        douts, previous = torch.empty_like(y, dtype=low), torch.empty_like(y, dtype=low)
        starts = list(itertools.accumulate(ctx.rows, initial=0))
        for step in reversed(range(len(ctx.rows))):
            n = ctx.rows[step]
            at, before = (
                slice(starts[step], starts[step] + n),
                slice(starts[step - 1], starts[step - 1] + n),
            )
            dout = dy[:, at] + dh[:, :n]
            if ctx.clips.out is not None:
                dout.masked_fill_(y[:, at].abs() >= ctx.clips.out, 0.0)
            douts[:, at] = dout
            previous[:, at] = y[:, before] if step else h0[:, :n]
            dhidden = (
                dout if projection_t is None else torch.bmm(douts[:, at], projection_t).to(y.dtype)
            )
            i, j, f, o = gates[:, at].split(dim, 2)
            cell, dcell = cells[:, at], dc[:, :n]
            squashed = cell.tanh()
            dsquashed = dhidden * o
            dcell.add_(_tanh_gradient(dsquashed, squashed, grad_input=dsquashed))
            if ctx.clips.cell is not None:
                dcell.masked_fill_(cell.abs() >= ctx.clips.cell, 0.0)
            # The gradients before the activations take the gates' place.
            _sigmoid_gradient(dhidden.mul_(squashed), o, grad_input=o)
            di, dj = dcell * j, dcell * i
            df = dcell * (cells[:, before] if step else c0[:, :n])
            dcell.mul_(f)
            _sigmoid_gradient(di, i, grad_input=i)
            _tanh_gradient(dj, j, grad_input=j)
            _sigmoid_gradient(df, f, grad_input=f)
            dh[:, :n] = torch.bmm(gates[:, at].to(low), recurrent_t)
        dgates = gates.to(low)
        return (
            torch.bmm(dgates, input.transpose(1, 2)).to(x.dtype)
            if ctx.needs_input_grad[0]
            else None,
            torch.bmm(x.to(low).transpose(1, 2), dgates).to(x.dtype),
            torch.bmm(previous.transpose(1, 2), dgates).to(x.dtype),
            gates.sum(1),
            None if projection is None else torch.bmm(hiddens.transpose(1, 2), douts).to(x.dtype),
            dh if ctx.needs_input_grad[5] else None,
            dc if ctx.needs_input_grad[6] else None,
            None,
            None,
            None,
        )

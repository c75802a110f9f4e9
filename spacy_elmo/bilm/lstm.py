"""One LSTM layer of a biLM, in both directions: its parameters, and a loop over time steps in torch operators for
any device and float type. In float32 on a CPU, the C functions of `kernels/fused_lstm.py` replace the loop.

The formulas are from Sak et al. 2014, in the variant of TensorFlow's `LSTMCell`, which bilm-tf uses
(`model.py`, `training.py`):

    i, j, f, o = split(x W_x + h W_h + b)          j: the candidate
    c <- clip(σ(f + forget_bias) c + σ(i) tanh(j))
    h <- clip((σ(o) tanh(c)) W_p)                  without W_p: h <- σ(o) tanh(c), never clipped

The sequences of a batch are packed as in torch's `PackedSequence`, so padding is never computed. Both
directions of the layer are computed at once, because on a GPU the start of an operation often takes longer than
the operation. For the same reason, everything that does not depend on the previous time step is computed outside
the loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .config import BiLMConfig, Precision
from .kernels.fused_lstm import (
    Clips,
    FusedLSTM,
    FusedWeights,
    blocks,
    has_fused_lstm,
    pack_forward,
    run,
)

_sigmoid_backward, _tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


class LSTMLayer(nn.Module):
    """One LSTM layer in both directions. Direction 0 runs forward, direction 1 backward.

    The first dimension of each parameter is the direction. Vectors are rows, multiplied by a matrix W from
    the right (x W). The columns for the gates are in TensorFlow's order: input gate i, candidate j, forget
    gate f, output gate o.
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
        has_projection = dim != width or config.square_projections
        self.projection = nn.Parameter(torch.empty(2, dim, width)) if has_projection else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters as bilm-tf does: Glorot's uniform distribution for the matrices (the
        input and recurrent matrices count as one matrix), and 0 for the bias."""
        rows, columns = 2 * self.input.shape[1], self.input.shape[2]
        bound = (6 / (rows + columns)) ** 0.5
        nn.init.uniform_(self.input, -bound, bound)
        nn.init.uniform_(self.recurrent, -bound, bound)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            bound = (6 / sum(self.projection.shape[1:])) ** 0.5
            nn.init.uniform_(self.projection, -bound, bound)

    def forward(
        self, x: Tensor, batch_sizes: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run both directions over B sequences, which are packed without padding (see `Packing`).

        Under `torch.autocast`, only the matrix products have the data type of autocast.

        Args:
            x: (2, M, P) the inputs of each direction: M packed vectors of width P.
            batch_sizes: number of sequences at each time step; the sum is M.
            h, c: (2, B, P) and (2, B, C), the state before the first time step, for C cells. The longest
                sequence comes first. The tensors are not changed.

        Returns:
            The outputs, (2, M, P), and the state h and c after the last time step of each sequence. No
            gradient flows back through the returned state, as in bilm-tf and AllenNLP.
        """
        device = x.device.type
        autocast = torch.is_autocast_enabled(device)
        compute_dtype = torch.get_autocast_dtype(device) if autocast else x.dtype
        tensors = x, h, c, *self.parameters()
        with torch.autocast(device, enabled=False):
            fused = has_fused_lstm(compute_dtype, *tensors)
            if not (torch.is_grad_enabled() and any(t.requires_grad for t in tensors)):
                return InferenceLayer(self, compute_dtype, fused)(x, batch_sizes, h, c)
            return run_directions(
                x, *self._weights(), h, c, batch_sizes, self._clips, compute_dtype
            )

    @torch.no_grad()
    def prepare_for_inference(self, precision: Precision) -> InferenceLayer:
        """Return a copy of the layer for prediction only, with converted and prepacked matrices. Later changes
        of the parameters may have no effect on the copy."""
        compute_dtype = getattr(torch, precision)
        return InferenceLayer(
            self, compute_dtype, has_fused_lstm(compute_dtype, *self.parameters())
        )

    @property
    def _clips(self) -> Clips:
        return Clips(self.cell_clip, self.proj_clip if self.projection is not None else None)

    def _weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Return the input matrices, the recurrent matrices, the biases (with the forget bias added) and the
        projection matrices or None, each for both directions."""
        dim = self.bias.shape[1] // 4
        bias = self.bias.clone()
        bias[:, 2 * dim : 3 * dim] += self.forget_bias
        return self.input, self.recurrent, bias, self.projection

    def _weights_by_direction(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor | None]]:
        """Yield the weights of the forward direction, then those of the backward direction."""
        *weights, projection = self._weights()
        return zip(*weights, (None, None) if projection is None else projection, strict=True)


def run_directions(
    x: Tensor, input: Tensor, recurrent: Tensor, bias: Tensor, projection: Tensor | None, h: Tensor, c: Tensor,
    batch_sizes: list[int], clips: Clips, compute_dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Run both directions of an LSTM layer. Differentiable. For the arguments and results, see `PlainLSTM`."""
    weights = [w for w in (input, recurrent, bias, projection) if w is not None]
    settings = batch_sizes, clips, compute_dtype
    if not has_fused_lstm(compute_dtype, x, h, c, *weights):
        return PlainLSTM.apply(x, input, recurrent, bias, projection, h, c, *settings)
    projections = (None, None) if projection is None else projection
    directions = zip(x, input, recurrent, bias, projections, h, c, strict=True)
    return _stack([FusedLSTM.apply(*direction, *settings) for direction in directions])


class InferenceLayer(nn.Module):
    """An LSTM layer for prediction only. It has no parameters, and its outputs have no autograd graph.

    Args:
        layer: the layer of which this one is a copy.
        compute_dtype: data type of the matrix products.
        fused: use the C functions, which must exist for this data type (see `has_fused_lstm`).
    """

    def __init__(self, layer: LSTMLayer, compute_dtype: torch.dtype, fused: bool) -> None:
        super().__init__()
        self._clips, self._compute_dtype = layer._clips, compute_dtype
        self._fused: list[tuple[FusedWeights, Tensor]] = []
        self._plain: tuple[Tensor, Tensor, Tensor, Tensor | None] | None = None
        if fused:
            self._fused = [
                (pack_forward(input, recurrent, projection, compute_dtype), bias)
                for input, recurrent, bias, projection in layer._weights_by_direction()
            ]
        else:
            input, recurrent, bias, projection = layer._weights()
            last = None if projection is None else projection.to(compute_dtype)
            self._plain = input.to(compute_dtype), recurrent.to(compute_dtype), bias, last

    @torch.no_grad()
    def forward(
        self, x: Tensor, batch_sizes: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run both directions like `LSTMLayer.forward`, but in the precision of the layer, even under autocast."""
        with torch.autocast(x.device.type, enabled=False):
            if self._plain is None:
                # One direction after the other, so that the matrices of a direction stay in the processor's cache.
                directions = zip(self._fused, x, h, c, strict=True)
                return _stack(
                    [run(*w, self._clips, x_, h_, c_, batch_sizes) for w, x_, h_, c_ in directions]
                )
            y = torch.empty_like(x)
            for steps, rows in blocks(batch_sizes):
                settings = batch_sizes[steps], self._clips, self._compute_dtype
                y[:, rows], h, c, *_ = _forward(x[:, rows], *self._plain, h, c, *settings)
            return y, h, c


def _stack(outputs: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Stack the outputs and the final states of both directions."""
    y, h, c = (torch.stack(pair) for pair in zip(*outputs, strict=True))
    return y, h, c


class PlainLSTM(torch.autograd.Function):
    """Autograd function of D directions of an LSTM layer, with output size P and C cells, over B sequences, packed as
    in torch's `PackedSequence`. Its arguments are:

        x                the inputs, (D, M, P), where M is the sum of the lengths of the sequences
        input            matrices W_x, (D, P, 4C), with the gates in the order i, j, f, o
        recurrent        matrices W_h, (D, P, 4C)
        bias             biases, including the forget bias, (D, 4C)
        projection       matrices W_p, (D, C, P); None: no projection
        h, c             the output (D, B, P) and the cell state (D, B, C) before the first time step. The longest
                         sequence comes first. The tensors are not changed
        batch_sizes      number of sequences that have a first, second, ... time step
        clips            limits of c and h
        compute_dtype    data type of the matrix products

    The results are the outputs, (D, M, P), and the output and the cell state after the last time step of each
    sequence, (D, B, P) and (D, B, C).

    All activations are kept for the backward pass: 5C numbers for each packed row and direction. If a GPU has too
    little memory, lower `batch_tokens`.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, input: Tensor, recurrent: Tensor, bias: Tensor, projection: Tensor | None,
        h: Tensor, c: Tensor, batch_sizes: Sequence[int], clips: Clips, compute_dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
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
        # The types are those of the forward pass.
        with torch.autocast(dy.device.type, enabled=False):
            return _backward(ctx, dy)


def _forward(
    x: Tensor, input: Tensor, recurrent: Tensor, bias: Tensor, projection: Tensor | None, h: Tensor, c: Tensor,
    batch_sizes: Sequence[int], clips: Clips, dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Compute the results of `PlainLSTM`, the gates after their activations, (D, M, 4C), and the cell state after each
    time step, (D, M, C)."""
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

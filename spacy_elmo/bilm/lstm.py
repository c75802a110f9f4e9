"""The LSTM layers of a biLM, in both directions: their parameters, and a loop over time steps in torch operators for
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

import copy
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .config import BiLMConfig, Precision
from .kernels.fused_lstm import (
    Clips,
    Direction,
    ForwardWeights,
    FusedLSTM,
    blocks,
    forward,
    has_fused_lstm,
    widened,
)
from .kernels.native import padded

State = tuple[Any, Any]
"""The output h and the cell state c of LSTM layers: tensors, or NumPy arrays of an `InferenceLSTM`."""

_sigmoid_backward, _tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


class LSTM(nn.ModuleList):
    """The LSTM layers of a biLM, an `LSTMLayer` each."""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__(LSTMLayer(config) for _ in range(config.layers))
        self._config = config

    def forward(
        self,
        vectors: Tensor,
        rows: np.ndarray,
        batch_sizes: list[int],
        state: State | None = None,
        dropout: float = 0.0,
    ) -> tuple[Sequence[Tensor], State]:
        """Run L layers over B sequences, which are packed without padding (see `Packing`).

        Args:
            vectors: (K, P) vectors of width P.
            rows: (2, M) for each direction, the row of `vectors` that is the input of each packed row.
            batch_sizes: number of sequences at each time step; the sum is M.
            state: h (L, 2, B, P) and c (L, 2, B, C) before the first time step, for C cells; None: zeros. The longest
                sequence comes first. The tensors are not changed.
            dropout: probability with which each value in the input of a layer is set to zero.

        Returns:
            The inputs, and the outputs of each layer with its residual connection: L + 1 tensors (2, M, P). The state
            after the last time step of each sequence.
        """
        if isinstance(vectors, np.ndarray):
            vectors = torch.from_numpy(vectors)
        # Not vectors[...], because with several threads its backward pass adds in another order each time.
        index = torch.from_numpy(np.ascontiguousarray(rows)).to(vectors.device)
        values, states = [nn.functional.embedding(index, vectors)], []
        if state is None:
            shape, config = (len(self), 2, max(batch_sizes, default=0)), self._config
            zeros = vectors.new_zeros
            state = zeros((*shape, config.projection)), zeros((*shape, config.dim))
        h, c = state
        for level, layer in enumerate(self):
            x = nn.functional.dropout(values[-1], dropout, training=dropout > 0)
            y, *after = layer(x, batch_sizes, h[level], c[level])
            values.append(x + y if self._config.skip and level else y)
            states.append(after)
        h, c = (torch.stack(parts) for parts in zip(*states, strict=True))
        return values, (h, c)

    @torch.no_grad()
    def prepare_for_inference(self, precision: Precision) -> nn.Module:
        """Return a copy of the layers for prediction only, with converted and prepacked matrices. Later changes
        of the parameters may have no effect on the copy."""
        compute_dtype = getattr(torch, precision)
        layers: list[Any] = list(self)
        if has_fused_lstm(compute_dtype, *self.parameters()):
            return InferenceLSTM(layers, compute_dtype, residual=self._config.skip, half=True)
        other = copy.copy(self)
        modules: dict[str, Any] = {
            str(level): InferenceLayer(layer, compute_dtype) for level, layer in enumerate(layers)
        }
        other._modules = modules
        return other


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
            trained = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
            if trained or has_fused_lstm(compute_dtype, *tensors):
                settings = batch_sizes, self.clips, compute_dtype
                return run_directions(x, *self.weights(), h, c, *settings)
            return InferenceLayer(self, compute_dtype)(x, batch_sizes, h, c)

    @property
    def clips(self) -> Clips:
        """The limits of c and h."""
        return Clips(self.cell_clip, self.proj_clip if self.projection is not None else None)

    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Return the input matrices, the recurrent matrices, the biases (with the forget bias added) and the
        projection matrices or None, each for both directions."""
        dim = self.bias.shape[1] // 4
        bias = self.bias.clone()
        bias[:, 2 * dim : 3 * dim] += self.forget_bias
        return self.input, self.recurrent, bias, self.projection

    def directions(self) -> list[Direction]:
        """Return the weights of the forward direction, and those of the backward direction."""
        *weights, projection = self.weights()
        projections = (None, None) if projection is None else projection
        return [Direction(*each) for each in zip(*weights, projections, strict=True)]


class InferenceLSTM(nn.Module):
    """LSTM layers for prediction only, in one C function. They have no parameters. Their results are NumPy arrays,
    whose operations start much faster than those of torch.

    Args:
        layers: the layers of which these are copies.
        compute_dtype: data type of the matrix products; see `has_fused_lstm`.
        residual: whether all layers but the first have a residual connection.
        half: see `ForwardWeights`.
    """

    def __init__(
        self, layers: Sequence[LSTMLayer], compute_dtype: torch.dtype, *, residual: bool, half: bool
    ) -> None:
        super().__init__()
        directions = [layer.directions() for layer in layers]
        self._weights = ForwardWeights(directions, compute_dtype, half=half)
        self._levels, self._dim = len(layers), layers[0].bias.shape[1] // 4
        self._clips, self._residual = layers[0].clips, residual

    def forward(
        self,
        vectors: Tensor | np.ndarray,
        rows: np.ndarray,
        batch_sizes: list[int],
        state: State | None = None,
        dropout: float = 0.0,
    ) -> tuple[np.ndarray, State]:
        """Run the layers like `LSTM.forward`, but in their own precision, even under autocast, and without dropout."""
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        width, dim, (directions, m) = vectors.shape[1], self._dim, rows.shape
        batch = max(batch_sizes, default=0) if state is None else state[0].shape[2]
        h, c = (
            np.zeros((self._levels, directions, batch, padded(size)), dtype=np.float32)
            for size in (width, dim)
        )
        if state is not None:
            h[..., :width], c[..., :dim] = state
        values = np.empty((self._levels + 1, directions, m, width), dtype=np.float32)
        forward(
            self._weights, self._clips, values[0], values[1:], h, c, batch_sizes,
            vectors=vectors, types=np.ascontiguousarray(rows), residual=self._residual,
        )  # fmt: skip
        return values, (h[..., :width], c[..., :dim])


def run_directions(
    x: Tensor, input: Tensor, recurrent: Tensor, bias: Tensor, projection: Tensor | None, h: Tensor, c: Tensor,
    batch_sizes: list[int], clips: Clips, compute_dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Run both directions of an LSTM layer. Differentiable. For the arguments and results, see `PlainLSTM`."""
    weights = [w for w in (input, recurrent, bias, projection) if w is not None]
    settings = batch_sizes, clips, compute_dtype
    # The C functions trust the shapes; torch says what is wrong with them.
    if x.shape[2] != input.shape[1] or not has_fused_lstm(compute_dtype, x, h, c, *weights):
        return PlainLSTM.apply(x, input, recurrent, bias, projection, h, c, *settings)
    projections = (None, None) if projection is None else projection
    if torch.is_grad_enabled():
        directions = zip(x, input, recurrent, bias, projections, h, c, strict=True)
        results = [FusedLSTM.apply(*direction, *settings) for direction in directions]
        y, h, c = (torch.stack(pair) for pair in zip(*results, strict=True))
        return y, h, c
    # Without activations for a backward pass.
    matrices = [Direction(*each) for each in zip(input, recurrent, bias, projections, strict=True)]
    width, dim = h.shape[2], c.shape[2]
    y, h, c = (
        x.new_empty((1, *x.shape[:2], width)),
        *(widened(t, padded(t.shape[2])) for t in (h, c)),
    )
    packed = ForwardWeights([matrices], compute_dtype, half=False)
    forward(packed, clips, x.contiguous(), y, h[None], c[None], batch_sizes)
    return y[0], h[..., :width], c[..., :dim]


class InferenceLayer(nn.Module):
    """An LSTM layer for prediction only, in torch operators. It has no parameters, and its outputs have no autograd
    graph.

    Args:
        layer: the layer of which this one is a copy.
        compute_dtype: data type of the matrix products.
    """

    def __init__(self, layer: LSTMLayer, compute_dtype: torch.dtype) -> None:
        super().__init__()
        input, recurrent, bias, projection = layer.weights()
        last = None if projection is None else projection.to(compute_dtype)
        self._weights = input.to(compute_dtype), recurrent.to(compute_dtype), bias, last
        self._clips, self._compute_dtype = layer.clips, compute_dtype

    @torch.no_grad()
    def forward(
        self, x: Tensor, batch_sizes: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run both directions like `LSTMLayer.forward`, but in the precision of the layer, even under autocast."""
        with torch.autocast(x.device.type, enabled=False):
            y = torch.empty_like(x)
            for steps, rows in blocks(batch_sizes):
                settings = batch_sizes[steps], self._clips, self._compute_dtype
                y[:, rows], h, c, *_ = _forward(x[:, rows], *self._weights, h, c, *settings)
            return y, h, c


class PlainLSTM(torch.autograd.Function):
    """Autograd function of D directions of an LSTM layer, with input size X, output size P and C cells, over B
    sequences, packed as in torch's `PackedSequence`. Its arguments are:

        x                the inputs, (D, M, X), where M is the sum of the lengths of the sequences
        input            matrices W_x, (D, X, 4C), with the gates in the order i, j, f, o
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
    cells, y = (c.new_empty((*x.shape[:2], size)) for size in (dim, h.shape[2]))
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

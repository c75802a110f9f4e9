"""Forward pass of the layers of an LSTM, and backward pass of one direction of a layer. One call of a C function
(`fused_lstm.c`) computes many time steps.

The module `bilm/lstm.py` contains the formulas and the equivalent in torch operators. The C function computes
x W_x and h W_h as one product, [x ; h] [W_x ; W_h], and applies the gates while the sums of the product are
in the processor's cache. In float32 it computes the same bits on every processor, and the bits of a sequence
do not depend on other sequences in the batch. In bfloat16 the C function requires AVX512-BF16.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .native import (
    ROW_GAP,
    Array,
    addresses,
    functions,
    half_of,
    pack,
    padded,
    rows_apart,
    weight_gradient,
)

_ROWS_PER_BLOCK = 512
_WINDOW = 64  # as in fused_lstm.c
MAX_KEPT_ROWS = 8192
"""Largest sum of sequence lengths for which all activations are kept for the backward pass. Larger batches
are divided into blocks of time steps, and the backward pass computes the activations in each block again."""


class Clips(NamedTuple):
    """Limits of the magnitudes of an LSTM's cell state and output; None: no limit."""

    cell: float | None
    out: float | None


class Kept(NamedTuple):
    """Activations of one direction of a layer for the backward pass, over packed sequences with M time steps in total.

    X, P and C are the sizes of the input x, the output h and the cell state c; X', P' and C' are X, P and C, rounded up
    to a multiple of 16. `xh`, `hiddens` and `gates` have the data type of the products, the others are float32.
    """

    xh: Tensor
    """For each time step of each sequence, the input x and the previous output h, concatenated: (M, X' + P')."""
    hiddens: Tensor
    """The values σ(o) tanh(c), (M, C')."""
    gates: Tensor
    """The gates after their activations, (M, 4C')."""
    cells: Tensor
    """The cell state c after each time step, (M, C')."""
    outputs: Tensor
    """The output h after each time step, (M, P)."""


class Direction(NamedTuple):
    """The float32 parameters of one direction of a layer; see `lstm.PlainLSTM`."""

    input: Tensor
    recurrent: Tensor
    bias: Tensor
    projection: Tensor | None


class ForwardWeights:
    """The parameters of L layers in D directions, packed for the function `forward`.

    Args:
        layers: the directions of each layer.
        compute_dtype: data type of the matrix products.
        half: also store matrices in float16 if that is exact. Short batches, which wait for the memory of the
            weights, then read half as much.
    """

    def __init__(
        self, layers: Sequence[Sequence[Direction]], compute_dtype: torch.dtype, *, half: bool
    ) -> None:
        self.compute_dtype = compute_dtype
        self.run = functions("fused_forward")[compute_dtype]
        """The C function."""
        half = half and compute_dtype == torch.float32
        self._tensors: list[Tensor | None] = []
        for direction in itertools.chain(*layers):
            gates = pack([_by_gate(direction.input), _by_gate(direction.recurrent)], compute_dtype)
            projection = direction.projection
            last = None if projection is None else pack([projection[:, None]], compute_dtype)
            for panels in (gates, last):
                self._tensors += [panels, half_of(panels) if half and panels is not None else None]
            bias = widened(direction.bias.view(4, -1), padded(len(direction.bias) // 4))
            self._tensors.append(bias.view(4, -1, 16).transpose(0, 1).contiguous())
        self.table = addresses(self._tensors)
        """The tensors as an array of the C structure `LayerWeights`."""


class BackwardWeights(NamedTuple):
    """The matrices of one direction of an LSTM layer, packed for the function `backward`."""

    gates: Tensor
    """The transposed input matrix W_x, then the transposed recurrent matrix W_h."""
    projection: Tensor | None
    """The transposed projection matrix W_p; None: no projection."""


def has_fused_lstm(compute_dtype: torch.dtype, *tensors: Tensor) -> bool:
    """Return True if there is a C function that multiplies in `compute_dtype` and can read the tensors."""
    return compute_dtype in functions("fused_forward", *tensors)


def pack_backward(
    input: Tensor, recurrent: Tensor, projection: Tensor | None, compute_dtype: torch.dtype
) -> BackwardWeights:
    """Pack the float32 matrices of one direction (see `lstm.PlainLSTM`) for the function `backward`. `compute_dtype`
    is the data type of the matrix products."""
    both = [
        pack([gate.t()[:, None] for gate in _by_gate(weight).unbind(1)], compute_dtype)
        for weight in (input, recurrent)
    ]
    last = None if projection is None else pack([projection.t()[:, None]], compute_dtype)
    return BackwardWeights(torch.cat(both), last)


def forward(
    weights: ForwardWeights, clips: Clips, inputs: Array, outputs: Array, h: Array, c: Array,
    batch_sizes: Sequence[int], *, vectors: Array | None = None, types: Array | None = None,
    residual: bool = False, kept: Kept | None = None,
) -> None:  # fmt: skip
    """Run L layers of an LSTM in D directions, with output size P and cell state size C, over B sequences, packed
    as in torch's `PackedSequence`, with M time steps in total. The input size X is P if there are several layers.
    All arrays are contiguous.

    Args:
        clips: limits of the magnitudes of c and h.
        inputs: (D, M, X) the inputs of the first layer.
        outputs: (L, D, M, P) space for the output of each layer.
        h, c: the output (L, D, B, P') and the cell state (L, D, B, C') before the first time step, with columns of
            zeros up to a multiple of 16. Both are overwritten with the state after the last time step of each
            sequence. The longest sequence comes first.
        batch_sizes: number of sequences that have a first, second, ... time step.
        vectors, types: (any, X) vectors, and the rows of those that are the inputs, (D, M) integers, which the function
            copies to `inputs`. None: they are already there.
        residual: from the second layer on, the output of a layer is h + x.
        kept: the activations of the only layer and direction are also written to these tensors, except `outputs`.
    """
    levels, directions, _, width = outputs.shape
    x_width, (*_, batch, dim), wide_width = padded(inputs.shape[2]), c.shape, h.shape[3]
    assert levels == 1 or x_width == wide_width
    threads, hidden_step = torch.get_num_threads(), dim + ROW_GAP
    window, step = threads * _WINDOW, directions * batch
    size = window * (4 * dim + x_width) + step * (x_width + wide_width + hidden_step)
    scratch = np.empty(size, dtype=np.float32)
    xh, hiddens, gates, cells = kept[:4] if kept else (None, None, None, None)
    weights.run(
        threads, levels, directions, len(batch_sizes), np.array(batch_sizes, dtype=np.int64),
        batch, dim, wide_width, x_width, width, inputs.shape[2], weights.table, *map(_limit, clips), residual,
        vectors, types, inputs, outputs, h, c, hidden_step, scratch, xh, hiddens, gates, cells,
    )  # fmt: skip


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


def backward(
    weights: BackwardWeights, clips: Clips, kept: Kept, first_cells: Tensor, batch_sizes: Sequence[int],
    dgiven: Tensor, dhidden: Tensor, dstate: Tensor, *, inputs: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:  # fmt: skip
    """Compute the gradients of `forward`, from the last time step to the first.

    Args:
        weights: the result of `pack_backward`.
        clips, batch_sizes: the arguments of `forward`.
        kept: the activations that `forward` has kept.
        first_cells: the cell state before the first time step, (B, C).
        dgiven: the gradient of the outputs, (M, P).
        dhidden, dstate: the gradients of the output (B, P') and the cell state (B, C') after the last time step.
            Both tensors are overwritten with the gradients before the first time step.
        inputs: whether to compute the gradient of the inputs.

    Returns:
        The gradient of the gates before their activations, (M, 4C'), and the gradient of the outputs before clipping,
        (M, P'), both in the data type of the products; the gradient of the input, (M, X') float32, or None; and the
        gradient of the bias, (4C',) float32.
    """
    wide_width, wide_dim = dhidden.shape[1], kept.cells.shape[1]
    x_width = kept.xh.shape[1] - wide_width
    dgates = rows_apart(kept.gates.shape, kept.gates.dtype)
    doutputs = kept.xh.new_empty((len(dgiven), wide_width))
    dx = dgiven.new_empty((len(dgiven), x_width)) if inputs else None
    threads = torch.get_num_threads()
    dbias = dgiven.new_zeros((threads, 4 * wide_dim))
    steps = torch.tensor(batch_sizes, dtype=torch.int64, device="cpu")
    dgiven, outputs = (widened(t, wide_width) for t in (dgiven, kept.outputs))
    first_cells = widened(first_cells, wide_dim)
    functions("fused_backward")[weights.gates.dtype](
        threads, len(batch_sizes), steps, wide_dim, wide_width, x_width, *weights, *map(_limit, clips),
        kept.gates, kept.cells, first_cells, outputs, dgiven,
        dgates, dgates.stride(0), doutputs, dx, dhidden, dstate, dbias,
    )  # fmt: skip
    return dgates, doutputs, dx, dbias.sum(0)


class FusedLSTM(torch.autograd.Function):
    """Autograd function of one direction of an LSTM layer. C functions compute both passes."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, input: Tensor, recurrent: Tensor, bias: Tensor, projection: Tensor | None,
        h: Tensor, c: Tensor, batch_sizes: list[int], clips: Clips, compute_dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """Run one direction over packed sequences. For the arguments, see `lstm.PlainLSTM`, without the dimension D;
        all tensors are float32."""
        direction = Direction(input, recurrent, bias, projection)
        weights = ForwardWeights([[direction]], compute_dtype, half=False)
        saved: list[Tensor] = []
        if len(x) <= MAX_KEPT_ROWS:
            kept, last_h, last_c = _run(weights, clips, x, h, c, batch_sizes)
            y, saved = kept.outputs, [c, *kept]
        else:
            y, last_h, last_c = x.new_empty((len(x), h.shape[1])), h, c
            for steps, part in blocks(batch_sizes):
                n = batch_sizes[steps.start]
                saved += [last_h[:n], last_c[:n]]
                kept, last_h, last_c = _run(
                    weights, clips, x[part], last_h, last_c, batch_sizes[steps]
                )
                y[part] = kept.outputs
        ctx.save_for_backward(x, input, recurrent, bias, projection, *saved)
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
    width, dim = recurrent.shape[0], len(bias) // 4
    weights = pack_backward(input, recurrent, projection, ctx.compute_dtype)
    dx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
    dh = x.new_zeros((ctx.sequences, padded(width)))
    dc = x.new_zeros((ctx.sequences, padded(dim)))
    dbias = x.new_zeros(4 * dc.shape[1])
    dgates = dprojection = None
    for batch_sizes, part, first_cells, kept in _blocks(ctx):
        dblock, doutputs, dx_block, dbias_block = backward(
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
        if dx is not None and dx_block is not None:
            dx[part] = dx_block[:, : x.shape[1]]
        dbias += dbias_block
        dgates = weight_gradient(kept.xh, dblock, into=dgates)
        if projection is not None:
            dprojection = weight_gradient(kept.hiddens, doutputs, into=dprojection)
    assert dgates is not None  # there is at least one block
    by_gate = dgates.view(-1, 4, dc.shape[1])[..., :dim]
    x_width = padded(x.shape[1])
    return (
        dx,
        by_gate[: x.shape[1]].reshape(-1, 4 * dim),
        by_gate[x_width : x_width + width].reshape(-1, 4 * dim),
        dbias.view(4, -1)[:, :dim].reshape(-1),
        None if projection is None or dprojection is None else dprojection[:dim, :width],
        dh[:, :width] if ctx.needs_input_grad[5] else None,
        dc[:, :dim] if ctx.needs_input_grad[6] else None,
        None, None, None,
    )  # fmt: skip


def _blocks(ctx: Any) -> Iterator[tuple[Sequence[int], slice, Tensor, Kept]]:
    """Yield blocks of time steps, the last block first. If the forward pass kept the gates, all time steps
    are one block. If not, the forward pass of each block is computed again.

    Yields:
        For each block: the batch sizes, the slice of packed rows, the cell state before the block, and the
        activations.
    """
    x, input, recurrent, bias, projection, *saved = ctx.saved_tensors
    if len(x) <= MAX_KEPT_ROWS:
        c, *kept = saved
        yield ctx.batch_sizes, slice(0, len(x)), c, Kept(*kept)
        return
    direction = Direction(input, recurrent, bias, projection)
    weights = ForwardWeights([[direction]], ctx.compute_dtype, half=False)
    states = zip(saved[::2], saved[1::2], strict=True)
    for (steps, part), (h, c) in reversed(list(zip(blocks(ctx.batch_sizes), states, strict=True))):
        batch_sizes = ctx.batch_sizes[steps]
        kept, _, _ = _run(weights, ctx.clips, x[part], h, c, batch_sizes)
        yield batch_sizes, part, c, kept


def _run(
    weights: ForwardWeights, clips: Clips, x: Tensor, h: Tensor, c: Tensor, batch_sizes: Sequence[int]
) -> tuple[Kept, Tensor, Tensor]:  # fmt: skip
    """Run one direction of one layer. Return its activations, and h and c after the last time step of each sequence.
    The shapes are (M, P), (B, P) and (B, C)."""
    m, width, dim, compute_dtype = len(x), h.shape[1], c.shape[1], weights.compute_dtype
    wide_width, wide_dim = padded(width), padded(dim)
    kept = Kept(
        x.new_empty((m, padded(x.shape[1]) + wide_width), dtype=compute_dtype),
        rows_apart((m, wide_dim), compute_dtype),
        x.new_empty((m, 4 * wide_dim), dtype=compute_dtype),
        x.new_empty((m, wide_dim)),
        x.new_empty((m, width)),
    )
    last_h, last_c = widened(h, wide_width), widened(c, wide_dim)
    forward(
        weights, clips, x.contiguous()[None], kept.outputs[None, None], last_h[None, None], last_c[None, None],
        batch_sizes, kept=kept,
    )  # fmt: skip
    return kept, last_h[:, :width], last_c[:, :dim]


def _by_gate(weight: Tensor) -> Tensor:
    return weight.reshape(len(weight), 4, -1)


def widened(rows: Tensor, columns: int) -> Tensor:
    """Return a contiguous copy in which the last dimension is padded with zeros to the size `columns`."""
    copied = rows.new_zeros((*rows.shape[:-1], columns))
    copied[..., : rows.shape[-1]] = rows
    return copied


def _limit(clip: float | None) -> float:
    return math.inf if clip is None else float(clip)

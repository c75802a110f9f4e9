"""Forward and backward pass of one direction of an LSTM layer. One call of a C function (`fused_lstm.c`)
computes many time steps.

The module `bilm/lstm.py` contains the formulas and the equivalent in torch operators. The C function computes
x W_x and h W_h as one product, [x ; h] [W_x ; W_h], and applies the gates while the sums of the product are
in the processor's cache. In float32 it computes the same bits on every processor, and the bits of a sequence
do not depend on other sequences in the batch. In bfloat16 the C function requires AVX512-BF16.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .native import functions, pack, padded, rows_apart, weight_gradient

_ROWS_PER_BLOCK = 512
_FEW_ROWS = 6
"""Up to this mean number of sequences per time step, the products x W_x of all time steps are computed first.
Then each time step reads only half of the weights, W_h. The bits of the results do not change."""
MAX_KEPT_ROWS = 8192
"""Largest sum of sequence lengths for which all activations are kept for the backward pass. Larger batches
are divided into blocks of time steps, and the backward pass computes the activations in each block again."""


class Clips(NamedTuple):
    """Limits of the magnitudes of an LSTM's cell state and output; None: no limit."""

    cell: float | None
    out: float | None


class Forward(NamedTuple):
    """Results of a forward pass over packed sequences with M time steps in total.

    P and C are the sizes of the output h and the cell state c; P' and C' are P and C, rounded up to a
    multiple of 16. `xh`, `hiddens` and `gates` have the data type of the products, the others are float32.
    """

    xh: Tensor
    """For each time step of each sequence, the input x and the previous output h, concatenated: (M, 2P')."""
    hiddens: Tensor
    """The values σ(o) tanh(c), (M, C')."""
    gates: Tensor | None
    """The gates after their activations, (M, 4C'). None if there is no backward pass."""
    cells: Tensor | None
    """The cell state c after each time step, (M, C'). None if there is no backward pass."""
    outputs: Tensor
    """The output h after each time step, (M, P')."""
    h: Tensor
    """The output h after the last time step of each sequence, (sequences, P)."""
    c: Tensor
    """The cell state c after the last time step of each sequence, (sequences, C)."""


class FusedWeights(NamedTuple):
    """The matrices of one direction of an LSTM layer, packed for either the forward or the backward pass."""

    gates: Tensor
    """Input matrix W_x and recurrent matrix W_h. For the backward pass, each of them is transposed."""
    projection: Tensor | None
    """Projection matrix W_p, transposed for the backward pass; None: no projection."""


def has_fused_lstm(compute_dtype: torch.dtype, *tensors: Tensor) -> bool:
    """Return True if there is a C function that multiplies in `compute_dtype` and can read the tensors."""
    return compute_dtype in functions("fused_forward", *tensors)


def pack_forward(
    input: Tensor, recurrent: Tensor, projection: Tensor | None, compute_dtype: torch.dtype
) -> FusedWeights:
    """Pack the float32 matrices of one direction (see `lstm.PlainLSTM`) for the function `forward`. `compute_dtype`
    is the data type of the matrix products."""
    gates = pack([_by_gate(input), _by_gate(recurrent)], compute_dtype)
    return FusedWeights(
        gates, None if projection is None else pack([projection[:, None]], compute_dtype)
    )


def pack_backward(
    input: Tensor, recurrent: Tensor, projection: Tensor | None, compute_dtype: torch.dtype
) -> FusedWeights:
    """Pack the float32 matrices of one direction for the function `backward`; see `pack_forward`."""
    both = [
        pack([gate.t()[:, None] for gate in _by_gate(weight).unbind(1)], compute_dtype)
        for weight in (input, recurrent)
    ]
    last = None if projection is None else pack([projection.t()[:, None]], compute_dtype)
    return FusedWeights(torch.cat(both), last)


def forward(
    weights: FusedWeights, bias: Tensor, clips: Clips, x: Tensor, h: Tensor, c: Tensor, batch_sizes: Sequence[int],
    *, keep: bool,
) -> Forward:  # fmt: skip
    """Run one direction of an LSTM layer, with output size P and cell state size C, over B sequences, packed
    as in torch's `PackedSequence`.

    Args:
        weights: the result of `pack_forward`.
        bias: (4C,), including the forget bias.
        clips: limits of the magnitudes of c and h.
        x: the inputs of all time steps of all sequences, (time steps, P).
        h, c: the output (B, P) and the cell state (B, C) before the first time step. The longest sequence
            comes first. The tensors are not changed.
        batch_sizes: number of sequences that have a first, second, ... time step.
        keep: whether to store the gates and the cell states for `backward`.
    """
    (m, width), dim, compute_dtype = x.shape, c.shape[1], weights.gates.dtype
    wide_dim, wide_width = padded(dim), padded(width)
    first = max(batch_sizes, default=0)
    # The padding is multiplied by zeros, so it must be finite.
    allocate = x.new_zeros if wide_width > width else x.new_empty
    xh = allocate((m, 2 * wide_width), dtype=compute_dtype)
    xh[:, :width] = x
    xh[:first, wide_width : wide_width + width] = h[:first]
    state = _widened(c, wide_dim).clone(memory_format=torch.contiguous_format)
    hiddens = rows_apart((m, wide_dim), compute_dtype)
    gates = x.new_empty((m, 4 * wide_dim), dtype=compute_dtype) if keep else None
    cells = x.new_empty((m, wide_dim)) if keep else None
    outputs = x.new_empty((m, wide_width))
    few_rows = m <= _FEW_ROWS * len(batch_sizes)
    inputs = x.new_empty((m, 4 * wide_dim)) if few_rows else None
    own_bias = _widened(bias.view(4, dim), wide_dim).contiguous()
    steps = torch.tensor(batch_sizes, dtype=torch.int64, device="cpu")
    functions("fused_forward")[compute_dtype](
        torch.get_num_threads(), len(batch_sizes), steps, wide_dim, wide_width,
        *weights, own_bias, *map(_limit, clips), xh, inputs, state, hiddens, hiddens.stride(0),
        gates, cells, outputs,
    )  # fmt: skip
    last_h = h.clone(memory_format=torch.contiguous_format)
    last_h[:first] = outputs[_last_rows(batch_sizes), :width]
    return Forward(xh, hiddens, gates, cells, outputs, last_h, narrowed(state, dim))


def run(
    weights: FusedWeights, bias: Tensor, clips: Clips, x: Tensor, h: Tensor, c: Tensor, batch_sizes: Sequence[int],
    states: list[Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Run one direction block by block, with the arguments of `forward`. Return the outputs, (time steps, P), and
    h and c after the last time step of each sequence. Add h and c before each block to `states`."""
    y = torch.empty_like(x)
    for steps, part in blocks(batch_sizes):
        if states is not None:
            n = batch_sizes[steps.start]
            states += [h[:n], c[:n]]
        result = forward(weights, bias, clips, x[part], h, c, batch_sizes[steps], keep=False)
        y[part], h, c = narrowed(result.outputs, x.shape[1]), result.h, result.c
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


def backward(
    weights: FusedWeights, clips: Clips, kept: Forward, first_cells: Tensor, batch_sizes: Sequence[int],
    dgiven: Tensor, dhidden: Tensor, dstate: Tensor, *, inputs: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:  # fmt: skip
    """Compute the gradients of `forward`, from the last time step to the first.

    Args:
        weights: the result of `pack_backward`.
        clips, batch_sizes: the arguments of `forward`.
        kept: the result of `forward` with `keep=True`.
        first_cells: the argument `c` of `forward`.
        dgiven: the gradient of the outputs, in the shape of the argument `x` of `forward`.
        dhidden, dstate: the gradients of the output and the cell state after the last time step, in the shape
            of `h` and `c`, with columns padded to a multiple of 16. Both tensors are overwritten with the
            gradients before the first time step.
        inputs: whether to compute the gradient of the inputs.

    Returns:
        The gradient of the gates before their activations, in the shape and data type of `Forward.gates`; the
        gradient of the outputs before clipping, in the shape of `Forward.outputs` and the same data type; the
        gradient of the input, in the shape of `Forward.outputs`, float32, or None; and the gradient of the bias,
        float32, with one number for each column of the gates. All are padded like the results in `Forward`.
    """
    assert kept.gates is not None and kept.cells is not None
    wide_width, wide_dim = kept.outputs.shape[1], kept.cells.shape[1]
    dgates = rows_apart(kept.gates.shape, kept.gates.dtype)
    doutputs = torch.empty_like(kept.xh[:, :wide_width])
    dx = torch.empty_like(kept.outputs) if inputs else None
    threads = torch.get_num_threads()
    dbias = dgiven.new_zeros((threads, 4 * wide_dim))
    steps = torch.tensor(batch_sizes, dtype=torch.int64, device="cpu")
    dgiven = _widened(dgiven, wide_width).contiguous()
    first_cells = _widened(first_cells, wide_dim).contiguous()
    functions("fused_backward")[weights.gates.dtype](
        threads, len(batch_sizes), steps, wide_dim, wide_width, *weights, *map(_limit, clips),
        kept.gates, kept.cells, first_cells, kept.outputs, dgiven,
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
        weights = pack_forward(input, recurrent, projection, compute_dtype)
        kept: list[Any] = []
        if len(x) <= MAX_KEPT_ROWS:
            result = forward(weights, bias, clips, x, h, c, batch_sizes, keep=True)
            y, last_h, last_c = narrowed(result.outputs, x.shape[1]), result.h, result.c
            kept = [h, c, *result]
        else:
            y, last_h, last_c = run(weights, bias, clips, x, h, c, batch_sizes, kept)
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
            dx[part] = dx_block[:, :width]
        dbias += dbias_block
        dgates = weight_gradient(kept.xh, dblock, into=dgates)
        if projection is not None:
            dprojection = weight_gradient(kept.hiddens, doutputs, into=dprojection)
    assert dgates is not None  # there is at least one block
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
    weights = pack_forward(input, recurrent, projection, ctx.compute_dtype)
    states = zip(kept[::2], kept[1::2], strict=True)
    for (steps, part), (h, c) in reversed(list(zip(blocks(ctx.batch_sizes), states, strict=True))):
        batch_sizes = ctx.batch_sizes[steps]
        again = forward(weights, bias, ctx.clips, x[part], h, c, batch_sizes, keep=True)
        yield batch_sizes, part, c, again


def _by_gate(weight: Tensor) -> Tensor:
    return weight.reshape(len(weight), 4, -1)


def narrowed(rows: Tensor, columns: int) -> Tensor:
    """Return the first `columns` columns of a matrix, without the padding, as a contiguous tensor."""
    return rows if rows.shape[1] == columns else rows[:, :columns].contiguous()


def _widened(rows: Tensor, columns: int) -> Tensor:
    """Pad the last dimension with zeros to the size `columns`."""
    more = columns - rows.shape[1]
    return torch.nn.functional.pad(rows, (0, more)) if more else rows


def _limit(clip: float | None) -> float:
    return math.inf if clip is None else float(clip)


def _last_rows(batch_sizes: Sequence[int]) -> Tensor:
    """Return the index of the packed row with the last time step of each sequence, (sequences,)."""
    sizes = np.asarray(batch_sizes, dtype=np.int64)
    ranks = np.arange(max(batch_sizes, default=0))
    steps = len(sizes) - np.searchsorted(sizes[::-1], ranks, "right")
    return torch.from_numpy((np.cumsum(sizes) - sizes)[steps - 1] + ranks)

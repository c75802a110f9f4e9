"""Forward and backward pass of one direction of an LSTM layer. One call of a C function (`fused_lstm.c`)
computes many time steps.

The module `plain_lstm` contains the formulas and the equivalent in torch operators. The C function computes
x W_x and h W_h as one product, [x ; h] [W_x ; W_h], and applies the gates while the sums of the product are
in the processor's cache. In float32 it computes the same bits on every processor, and the bits of a sequence
do not depend on other sequences in the batch. In bfloat16 the C function requires AVX512-BF16.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .native import functions
from .panels import pack, padded, rows_apart
from .plain_lstm import Clips, blocks

_FEW_ROWS = 6
"""Up to this mean number of sequences per time step, the products x W_x of all time steps are computed first.
Then each time step reads only half of the weights, W_h. The bits of the results do not change."""


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


class Gradients(NamedTuple):
    """Results of a backward pass. All gradients are padded in the same way as the results in `Forward`."""

    dgates: Tensor
    """Gradient of the gates before their activations, in the shape and data type of `Forward.gates`."""
    doutputs: Tensor
    """Gradient of the outputs before clipping, in the shape of `Forward.outputs` and the type of `dgates`."""
    dx: Tensor | None
    """Gradient of the input, in the shape of `Forward.outputs`, float32. None if it was not requested."""
    dbias: Tensor
    """Gradient of the bias, float32, with one number for each column of `dgates`."""


class FusedWeights(NamedTuple):
    """The matrices of one direction of an LSTM layer, packed for either the forward or the backward pass."""

    gates: Tensor
    """Input matrix W_x and recurrent matrix W_h. For the backward pass, each of them is transposed."""
    projection: Tensor | None
    """Projection matrix W_p, transposed for the backward pass; None: no projection."""


def pack_forward(
    input: Tensor, recurrent: Tensor, projection: Tensor | None, compute_dtype: torch.dtype
) -> FusedWeights:
    """Pack the float32 matrices of one direction (see `plain_lstm.PlainDirections`) for the function `forward`.
    `compute_dtype` is the data type of the matrix products."""
    gates = pack([_by_gate(input), _by_gate(recurrent)], compute_dtype)
    return FusedWeights(
        gates, None if projection is None else pack([projection[:, None]], compute_dtype)
    )


def pack_backward(
    input: Tensor, recurrent: Tensor, projection: Tensor | None, compute_dtype: torch.dtype
) -> FusedWeights:
    """Pack the float32 matrices of one direction (see `plain_lstm.PlainDirections`) for the function `backward`.
    `compute_dtype` is the data type of the matrix products."""
    both = [
        pack([gate.t()[:, None] for gate in _by_gate(weight).unbind(1)], compute_dtype)
        for weight in (input, recurrent)
    ]
    last = None if projection is None else pack([projection.t()[:, None]], compute_dtype)
    return FusedWeights(torch.cat(both), last)


def forward(
    weights: FusedWeights,
    bias: Tensor,
    clips: Clips,
    x: Tensor,
    h: Tensor,
    c: Tensor,
    batch_sizes: Sequence[int],
    *,
    keep: bool,
) -> Forward:
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


class FusedDirection:
    """One direction of an LSTM layer for prediction, with matrices that are packed only once.

    Args:
        input, recurrent, bias, projection, clips: see `plain_lstm.PlainDirections`, without the first
            dimension; the matrices are float32.
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
        self._weights = pack_forward(input, recurrent, projection, compute_dtype)
        self._bias, self._clips = bias, clips

    def run(
        self, x: Tensor, h: Tensor, c: Tensor, batch_sizes: Sequence[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run this direction over packed sequences. For the arguments, see `plain_lstm.PlainDirections.run`."""
        y = torch.empty_like(x)
        for steps, part in blocks(batch_sizes):
            result = forward(
                self._weights,
                self._bias,
                self._clips,
                x[part],
                h,
                c,
                batch_sizes[steps],
                keep=False,
            )
            y[part], h, c = narrowed(result.outputs, x.shape[1]), result.h, result.c
        return y, h, c


def backward(
    weights: FusedWeights,
    clips: Clips,
    kept: Forward,
    first_cells: Tensor,
    batch_sizes: Sequence[int],
    dgiven: Tensor,
    dhidden: Tensor,
    dstate: Tensor,
    *,
    inputs: bool,
) -> Gradients:
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
    return Gradients(dgates, doutputs, dx, dbias.sum(0))


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

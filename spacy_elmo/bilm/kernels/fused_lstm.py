"""Forward and backward pass of one direction of an LSTM layer. One call of C (`fused_lstm.c`) computes many
steps.

The module `plain_lstm` is the equivalent that runs everywhere. The kernel computes x W_x and h W_h as one
product, [x ; h] [W_x ; W_h], and applies the gates while the sums of the product are in the processor's
cache. In float32 the kernel computes the same bits on every processor, and the bits of a sequence do not
depend on other sequences in the batch. In bfloat16 the kernel requires AVX512-BF16.

The function `forward` keeps results for `backward`. In these results, the widths P and C are padded to P' and
C', the next multiples of 16 (see `panels`).
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
"""Largest mean number of sequences per step for which x W_x of all steps is computed as a separate product.
Each step then reads only half of the weights, W_h. The bits of the results do not change."""


class Forward(NamedTuple):
    """Results of a forward pass over M packed rows. The backward pass needs these results."""

    xh: Tensor
    """For each row, the input x and the output h of the previous step, concatenated: [x ; h], (M, 2P')."""
    hiddens: Tensor
    """The values σ(o) tanh(c), (M, C'), in the data type of the matrix products."""
    gates: Tensor | None
    """The gates after their activations, (M, 4C'), in the data type of the matrix products."""
    cells: Tensor | None
    """The cell state c after each step, (M, C') float32."""
    outputs: Tensor
    """The output h after each step, (M, P') float32."""
    h: Tensor
    """The output h after the last step of each sequence, (B, P)."""
    c: Tensor
    """The cell state c after the last step of each sequence, (B, C)."""


class Gradients(NamedTuple):
    """Results of a backward pass over M packed rows."""

    dgates: Tensor
    """The gradient of the gates before their activations, (M, 4C'), in the data
    type of the matrix products."""
    doutputs: Tensor
    """The gradient of h, (M, P'), in the data type of the matrix products."""
    dx: Tensor | None
    """(M, P') float32, the gradient of the input."""
    dbias: Tensor
    """(4C',) float32, the gradient of the bias."""


class FusedWeights(NamedTuple):
    """The matrices of one direction, packed for either the forward or the backward pass."""

    gates: Tensor
    """[W_x ; W_h] for the forward pass. W_x and W_h are transposed for the backward pass."""
    projection: Tensor | None
    """W_p for the forward pass, W_p transposed for the backward pass; None: no projection."""


def pack_forward(
    input: Tensor, recurrent: Tensor, projection: Tensor | None, compute_dtype: torch.dtype
) -> FusedWeights:
    """Pack float32 matrices for `forward`: `input` (P, 4C), `recurrent` (P, 4C) and `projection` (C, P)."""
    gates = pack([_by_gate(input), _by_gate(recurrent)], compute_dtype)
    return FusedWeights(
        gates, None if projection is None else pack([projection[:, None]], compute_dtype)
    )


def pack_backward(
    input: Tensor, recurrent: Tensor, projection: Tensor | None, compute_dtype: torch.dtype
) -> FusedWeights:
    """Pack float32 matrices for `backward`: `input` (P, 4C), `recurrent` (P, 4C) and `projection` (C, P)."""
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
    """Run one direction of an LSTM layer over packed sequences.

    Args:
        weights: the result of `pack_forward`.
        bias: (4C,) the bias, including the forget bias.
        clips: limits of the magnitudes of c and h.
        x: (M, P) inputs.
        h, c: (B, P) and (B, C), the state before the first step, in the order of ranks (see `Packing`). The
            tensors are not changed.
        batch_sizes: number of sequences at each step; the sum is M.
        keep: whether to store the gates and the cells for `backward`.
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
    steps = torch.tensor(batch_sizes, dtype=torch.int64)
    functions("fused_forward")[compute_dtype](
        torch.get_num_threads(), len(batch_sizes), steps, wide_dim, wide_width,
        *weights, own_bias, *map(_limit, clips), xh, inputs, state, hiddens, hiddens.stride(0),
        gates, cells, outputs,
    )  # fmt: skip
    last_h = h.clone(memory_format=torch.contiguous_format)
    last_h[:first] = outputs[_last_rows(batch_sizes), :width]
    return Forward(xh, hiddens, gates, cells, outputs, last_h, narrowed(state, dim))


class FusedDirection:
    """One direction of an LSTM layer, with matrices that are packed for prediction.

    Args:
        input, recurrent, bias, projection, clips: see `plain_lstm.Direction`; the matrices are float32.
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
        """Run this direction over packed sequences; see `plain_lstm.Direction.run`."""
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
    """Compute the gradients of `forward`, from the last step to the first.

    Args:
        weights: the result of `pack_backward`.
        clips, batch_sizes: the arguments of `forward`.
        kept: the result of `forward` with `keep=True`.
        first_cells: (B, C), the cell state c before the first step.
        dgiven: (M, P), the gradient of the outputs.
        dhidden, dstate: (B, P') and (B, C') the gradients of h and c after the last step. Both tensors are
            overwritten with the gradients of h and c before the first step.
        inputs: whether to compute the gradient of the inputs.
    """
    assert kept.gates is not None and kept.cells is not None
    wide_width, wide_dim = kept.outputs.shape[1], kept.cells.shape[1]
    dgates = rows_apart(kept.gates.shape, kept.gates.dtype)
    doutputs = torch.empty_like(kept.xh[:, :wide_width])
    dx = torch.empty_like(kept.outputs) if inputs else None
    threads = torch.get_num_threads()
    dbias = dgiven.new_zeros((threads, 4 * wide_dim))
    steps = torch.tensor(batch_sizes, dtype=torch.int64)
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
    """Remove the padding: return the first `columns` columns as a contiguous tensor."""
    return rows if rows.shape[1] == columns else rows[:, :columns].contiguous()


def _widened(rows: Tensor, columns: int) -> Tensor:
    """Pad rows with zeros to `columns` columns."""
    more = columns - rows.shape[1]
    return torch.nn.functional.pad(rows, (0, more)) if more else rows


def _limit(clip: float | None) -> float:
    return math.inf if clip is None else float(clip)


def _last_rows(batch_sizes: Sequence[int]) -> Tensor:
    """For each sequence, return the packed row of its last step, (B,)."""
    sizes = np.asarray(batch_sizes, dtype=np.int64)
    ranks = np.arange(max(batch_sizes, default=0))
    steps = len(sizes) - np.searchsorted(sizes[::-1], ranks, "right")
    return torch.from_numpy((np.cumsum(sizes) - sizes)[steps - 1] + ranks)

"""Many steps of one direction of an LSTM layer in one call of C (`fused_lstm.c`), forward and backward.

`plain_lstm` calls a matrix product and a pass over the gates for every step. This kernel computes x W_x and h W_h as
one product, [x ; h] [W_x ; W_h], and applies the gates to its sums before they have left the cache. In float32 it
computes the same bits on every processor, for a sequence alone and beside others. That module is the plain version,
which runs everywhere else. For bfloat16 it requires AVX512-BF16.

In what is kept between forward and backward, sizes are padded to multiples of 16, the columns of a panel: P to P' and
C to C'.
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
"""Sequences at a step, on average, up to which x W_x is a product of its own, of all steps, so that the steps read only
half of the weights. The bits are the same."""


class Forward(NamedTuple):
    """Results of a forward pass over M packed rows, as the backward pass needs them."""

    xh: Tensor
    """(M, 2P') [x ; h]: the input of each row, and h before the step."""
    hiddens: Tensor
    """(M, C') σ(o) tanh(c), in the type of the products."""
    gates: Tensor | None
    """(M, 4C') after their activations, in the type of the products."""
    cells: Tensor | None
    """(M, C') float32 c after each step."""
    outputs: Tensor
    """(M, P') float32 h."""
    h: Tensor
    """(B, P) after each sequence's last step."""
    c: Tensor
    """(B, C) after each sequence's last step."""


class Gradients(NamedTuple):
    """Results of a backward pass over M packed rows."""

    dgates: Tensor
    """(M, 4C') before the activations, in the type of the products."""
    doutputs: Tensor
    """(M, P') of h, in the type of the products."""
    dx: Tensor | None
    """(M, P') float32 of the input."""
    dbias: Tensor
    """(4C',) float32."""


class FusedWeights(NamedTuple):
    """The matrices of one direction, packed for one of the passes."""

    gates: Tensor
    """[W_x ; W_h] for the forward pass; both transposed for the backward pass."""
    projection: Tensor | None
    """W_p, transposed for the backward pass."""


def pack_forward(
    input: Tensor, recurrent: Tensor, projection: Tensor | None, compute_dtype: torch.dtype
) -> FusedWeights:
    """Return the matrices (P, 4C), (P, 4C) and (C, P), float32, packed for `forward`."""
    gates = pack([_by_gate(input), _by_gate(recurrent)], compute_dtype)
    return FusedWeights(
        gates, None if projection is None else pack([projection[:, None]], compute_dtype)
    )


def pack_backward(
    input: Tensor, recurrent: Tensor, projection: Tensor | None, compute_dtype: torch.dtype
) -> FusedWeights:
    """Return the matrices (P, 4C), (P, 4C) and (C, P), float32, packed for `backward`."""
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
    """Run over packed sequences.

    Args:
        weights: of `pack_forward`.
        bias: (4C,), the forget bias in it.
        clips: of c and of h.
        x: (M, P) inputs.
        h, c: (B, P) and (B, C), the state before the first step, by rank. Not changed.
        batch_sizes: sequences at each step; they sum to M.
        keep: the gates and the cells, for `backward`.
    """
    (m, width), dim, compute_dtype = x.shape, c.shape[1], weights.gates.dtype
    wide_dim, wide_width = padded(dim), padded(width)
    first = max(batch_sizes, default=0)
    # What is padded is multiplied by zeros, so it must be finite.
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
    """One direction of a layer, packed for prediction.

    Args:
        input, recurrent, bias, projection, clips: as of `plain_lstm.Direction`, the matrices float32.
        compute_dtype: the type of the products.
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
        """Run over packed sequences; see `plain_lstm.Direction.run`."""
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
    """Walk through the steps of `forward` from the last to the first.

    Args:
        weights: of `pack_backward`.
        clips, batch_sizes: as of `forward`.
        kept: what `forward` has left, the gates and cells with it.
        first_cells: (B, C) c before the first step.
        dgiven: (M, P) the gradient of the outputs.
        dhidden, dstate: (B, P') and (B, C') the gradients of h and c after the last step; receive those of h and c
            before the first.
        inputs: compute the gradient of the inputs.
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
    """Cut the padded columns off every row; contiguous."""
    return rows if rows.shape[1] == columns else rows[:, :columns].contiguous()


def _widened(rows: Tensor, columns: int) -> Tensor:
    """Return the rows with zeros after them."""
    more = columns - rows.shape[1]
    return torch.nn.functional.pad(rows, (0, more)) if more else rows


def _limit(clip: float | None) -> float:
    return math.inf if clip is None else float(clip)


def _last_rows(batch_sizes: Sequence[int]) -> Tensor:
    """Return (B,) the packed row of the last step of each sequence."""
    sizes = np.asarray(batch_sizes, dtype=np.int64)
    ranks = np.arange(max(batch_sizes, default=0))
    steps = len(sizes) - np.searchsorted(sizes[::-1], ranks, "right")
    return torch.from_numpy((np.cumsum(sizes) - sizes)[steps - 1] + ranks)

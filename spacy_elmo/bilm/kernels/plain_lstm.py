"""The hot loop: one direction of one LSTM layer, step after step.

The cell is TensorFlow's `LSTMCell` as bilm-tf uses it (`model.py`, `training.py`), of Sak et al. 2014:

    i, j, f, o = split(x W_x + h W_h + b)          j: the candidate
    c <- clip(σ(f + forget_bias) c + σ(i) tanh(j))
    h <- clip((σ(o) tanh(c)) W_p)                  without W_p: h <- σ(o) tanh(c), never clipped

Three things make it fast, and none changes a result: rows are packed, so that padding is never computed; the input half
x W_x of many steps is one product; the rest of a step is two products and one pass over the gates (`cell`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from . import cell
from .prepacked import MatmulWeight

_ROWS_PER_BLOCK = 512
MAX_KEPT_ROWS = 8192
"""Packed rows of which the backward pass has all activations in memory. Batches for training are smaller. Of a longer
input, which is one long span, it has the states between blocks of steps and computes the rest again."""


class Clips(NamedTuple):
    """Limits of the magnitude of c and of h; None: no limit."""

    cell: float | None
    out: float | None


class Direction(NamedTuple):
    """Weights and biases of one direction of a layer."""

    input: MatmulWeight
    """(P, 4C) W_x, gates in the order i, j, f, o."""
    recurrent: MatmulWeight
    """(P, 4C) W_h."""
    bias: Tensor
    """(4C,), the forget bias in it."""
    projection: MatmulWeight | None
    """(C, P) W_p."""
    clips: Clips

    def run(
        self, x: Tensor, h: Tensor, c: Tensor, batch_sizes: Sequence[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run over packed sequences; see the function `run`."""
        return run(x, self, h, c, batch_sizes)


def run(
    x: Tensor,
    direction: Direction,
    h: Tensor,
    c: Tensor,
    batch_sizes: Sequence[int],
    cells: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run one direction over packed sequences (see `Packing`), without a graph.

    Args:
        x: (M, P) inputs.
        h, c: (B, P) and (B, C), the state before the first step, by rank. Not changed.
        batch_sizes: number of sequences that have each step; they sum to M.
        cells: (M, C), written: c after each step.

    Returns:
        (M, P) the outputs, and the state after each sequence's last step.
    """
    compute_dtype = direction.recurrent.dtype
    y, h, c = torch.empty_like(x), *(t.clone(memory_format=torch.contiguous_format) for t in (h, c))
    most = max(batch_sizes, default=0)
    hidden = x.new_empty((most, c.shape[1]), dtype=compute_dtype)
    gates = None if cells is None else x.new_empty((most, 4 * c.shape[1]), dtype=compute_dtype)
    # Gates of a block of steps at a time: they stay in the cache, and memory does not grow by 4C per row.
    for steps, part in blocks(batch_sizes):
        block = batch_sizes[steps]
        advance(
            direction.input(x[part].to(compute_dtype)), block, direction, h, c, y[part],
            [hidden[:n] for n in block],
            None if gates is None else [gates[:n] for n in block],
            None if cells is None else cells[part].split(list(block)),
        )  # fmt: skip
    return y, h, c


def blocks(batch_sizes: Sequence[int]) -> Iterator[tuple[slice, slice]]:
    """Yield blocks of about 512 packed rows: the slice of steps and the slice of rows of each."""
    step = row = size = 0
    for end, n in enumerate(batch_sizes, 1):
        size += n
        if size >= _ROWS_PER_BLOCK or end == len(batch_sizes):
            yield slice(step, end), slice(row, row + size)
            step, row, size = end, row + size, 0


def advance(
    inputs: Tensor,
    batch_sizes: Sequence[int],
    direction: Direction,
    h: Tensor,
    c: Tensor,
    y: Tensor,
    hiddens: Sequence[Tensor],
    gates: Sequence[Tensor] | None = None,
    cells: Sequence[Tensor] | None = None,
) -> None:
    """Run one LSTM step for each entry of `batch_sizes`.

    Args:
        inputs: (M, 4C) x W_x.
        h, c: (B, ·), changed.
        y: (M, P), written.
        hiddens: for each step, (n, C), written: σ(o) tanh(c).
        gates, cells: for each step, (n, 4C) and (n, C), written: the activated gates and the new c. Both or neither.
    """
    nothing, sizes = [None] * len(batch_sizes), list(batch_sizes)
    steps = zip(
        sizes, inputs.split(sizes), y.split(sizes), hiddens, gates or nothing, cells or nothing, strict=True,
    )  # fmt: skip
    first = max(batch_sizes, default=0)
    _, recurrent, bias, projection, clips = direction
    before, c = h[:first].to(recurrent.dtype), c[:first]
    for n, z, out, hidden, gate, state in steps:
        if n < before.shape[0]:
            h[n : before.shape[0]] = before[n:]
            before, c = before[:n], c[:n]
        cell.forward(z, recurrent(before), bias, clips.cell, c, hidden, gate, state)
        before = hidden if projection is None else projection(hidden)
        if clips.out is not None:
            before.clamp_(-clips.out, clips.out)
        out.copy_(before)
    h[: before.shape[0]] = before

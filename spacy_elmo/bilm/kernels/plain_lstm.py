"""One direction of one LSTM layer as a loop over time steps, in torch operators, for prediction.

The formulas are from Sak et al. 2014, in the variant of TensorFlow's `LSTMCell`, which bilm-tf uses
(`model.py`, `training.py`):

    i, j, f, o = split(x W_x + h W_h + b)          j: the candidate
    c <- clip(σ(f + forget_bias) c + σ(i) tanh(j))
    h <- clip((σ(o) tanh(c)) W_p)                  without W_p: h <- σ(o) tanh(c), never clipped

The sequences of a batch are packed as in torch's `PackedSequence`, so padding is never computed. The products
x W_x of many time steps are computed as one product. The rest of a time step is two products and one pass
over the gates (`cell`). For training, see `plain_lstm_gradient`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from . import cell
from .prepacked import MatmulWeight

_ROWS_PER_BLOCK = 512


class Clips(NamedTuple):
    """Limits of the magnitudes of an LSTM's cell state and output; None: no limit."""

    cell: float | None
    out: float | None


class Direction(NamedTuple):
    """Weights and biases of one direction of an LSTM layer with output size P and cell state size C."""

    input: MatmulWeight
    """Input matrix W_x, (P, 4C), with the gates in the order i, j, f, o."""
    recurrent: MatmulWeight
    """Recurrent matrix W_h, (P, 4C)."""
    bias: Tensor
    """The bias, including the forget bias, (4C,)."""
    projection: MatmulWeight | None
    """Projection matrix W_p, (C, P); None: no projection."""
    clips: Clips

    def run(
        self, x: Tensor, h: Tensor, c: Tensor, batch_sizes: Sequence[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run this direction, with output size P and cell state size C, over B sequences, packed as in
        torch's `PackedSequence`.

        Args:
            x: the inputs, (M, P), where M is the sum of the lengths of the sequences.
            h, c: the output (B, P) and the cell state (B, C) before the first time step. The longest sequence
                comes first. The tensors are not changed.
            batch_sizes: number of sequences that have a first, second, ... time step.

        Returns:
            The outputs, (M, P); and the output and the cell state after the last time step of each sequence,
            (B, P) and (B, C).
        """
        outputs = []
        # The gates of one block of steps stay in the cache, and memory does not grow by 4C per row.
        for steps, part in blocks(batch_sizes):
            y, h, c = _advance(self, x[part], h, c, batch_sizes[steps])
            outputs.append(y)
        y = torch.cat(outputs) if outputs else torch.empty_like(x)
        return y, h, c


def blocks(batch_sizes: Sequence[int]) -> Iterator[tuple[slice, slice]]:
    """Divide packed sequences into blocks of time steps, with about 512 packed rows each. Yield, for each
    block, a slice of the time steps and a slice of the packed rows."""
    step = row = size = 0
    for end, n in enumerate(batch_sizes, 1):
        size += n
        if size >= _ROWS_PER_BLOCK or end == len(batch_sizes):
            yield slice(step, end), slice(row, row + size)
            step, row, size = end, row + size, 0


def _advance(
    direction: Direction, x: Tensor, h: Tensor, c: Tensor, batch_sizes: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute all time steps of `Direction.run` in one loop, without dividing the sequences into blocks."""
    matrix, recurrent, bias, projection, clips = direction
    sizes, first = list(batch_sizes), max(batch_sizes, default=0)
    inputs = matrix(x.to(matrix.dtype))
    before, state, outputs = h[:first].to(recurrent.dtype), c[:first], []
    # The final states: those of sequences without a step, then those of sequences that have ended.
    ended = [(h[first:], c[first:])]
    for n, z in zip(sizes, inputs.split(sizes), strict=True):
        if n < len(before):
            ended.append((before[n:].to(h.dtype), state[n:]))
            before, state = before[:n], state[:n]
        before, state = cell.forward(z, recurrent(before), bias, clips.cell, state)
        if projection is not None:
            before = projection(before)
        if clips.out is not None:
            before = before.clamp(-clips.out, clips.out)
        outputs.append(before)
    ended.append((before.to(h.dtype), state))
    y = torch.cat(outputs).to(x.dtype) if outputs else torch.empty_like(x)
    last_h, last_c = (torch.cat(parts) for parts in zip(*reversed(ended), strict=True))
    return y, last_h, last_c

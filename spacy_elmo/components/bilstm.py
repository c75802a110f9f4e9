"""`spacy-elmo.BiLSTMEncoder.v1`: an encoder of LSTM layers that read each sequence in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from thinc.api import Model, chain, residual
from thinc.types import Floats2d
from thinc.util import get_width
from torch import Tensor

from ..bilm.kernels.fused_lstm import Clips
from ..bilm.lstm import run_directions
from ..bilm.packing import Packing
from .torch_function import run

_NOT_CLIPPED = Clips(None, None)


def BiLSTMEncoder_v1(width: int, depth: int = 2) -> Model[list[Floats2d], list[Floats2d]]:
    """Build bidirectional LSTM layers, as the `encode` of an embedding. A text has the same vectors whatever else is in
    its batch, and averaged parameters (`use_averages`) are averaged here, too. Neither is true of
    `spacy.TorchBiLSTMEncoder.v1`.

    Args:
        width: width of the output, both directions together.
        depth: number of layers. `[training] dropout` is applied to the output of each. All but the first add their
            input to their output, as in UDPipe 2 (Straka 2018).
    """
    layers = [bilstm(width), *(residual(bilstm(width)) for _ in range(depth - 1))]
    return chain(*layers) if depth > 1 else layers[0]


def bilstm(width: int) -> Model[list[Floats2d], list[Floats2d]]:
    """Build one bidirectional LSTM layer."""
    if width % 2:
        raise ValueError(
            f"The width of a BiLSTM is {width}; it must be even, for each direction is a half"
        )
    return Model(
        "bilstm",
        forward,
        init=init,
        dims={"nI": None, "nO": width},
        params=dict.fromkeys(("input", "recurrent", "bias")),
        attrs={"dropout_rate": 0.0},
    )


def init(model: Model, X: list[Floats2d] | None = None, Y: Any = None) -> None:
    """Draw the matrices from the uniform distribution of torch's LSTM. The biases are 0, also those of the forget
    gates: with 1, the layers learn sentences more slowly."""
    if X is not None:
        model.set_dim("nI", get_width(X))
    inputs, width = model.get_dim("nI"), model.get_dim("nO") // 2
    bound = width**-0.5
    for name, rows in {"input": inputs, "recurrent": width}.items():
        matrix: Any = np.random.uniform(-bound, bound, (2, rows, 4 * width))
        model.set_param(name, model.ops.asarray_f(matrix))
    model.set_param("bias", model.ops.alloc2f(2, 4 * width))


def forward(
    model: Model[list[Floats2d], list[Floats2d]], X: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Compute the outputs of both directions for each vector of each sequence, (length, width)."""
    if not X:
        return [], lambda dY: []
    lengths = [len(x) for x in X]
    # `Packing` counts the words between two boundaries. These sequences have no boundaries.
    packing = Packing.of(np.asarray(lengths) - 2, closing=True)
    rate, width = model.attrs["dropout_rate"], model.get_dim("nO") // 2

    def compute(parameters: dict[str, Tensor], x: Tensor) -> list[Tensor]:
        orders = torch.from_numpy(packing.positions).to(x.device)
        inputs = torch.stack([x.index_select(0, order) for order in orders])
        h = c = x.new_zeros(2, len(lengths), width)
        settings = packing.batch_sizes, _NOT_CLIPPED, x.dtype
        input, recurrent, bias = (parameters[name] for name in ("input", "recurrent", "bias"))
        y, *_ = run_directions(inputs, input, recurrent, bias, None, h, c, *settings)
        halves = [
            half.index_select(0, order.argsort()) for half, order in zip(y, orders, strict=True)
        ]
        return [F.dropout(torch.cat(halves, 1), rate, is_train)]

    [Y], backprop = run(model, compute, [model.ops.flatten(X)], is_train)

    def backprop_lists(dY: list[Floats2d]) -> list[Floats2d]:
        [dX] = backprop([model.ops.flatten(dY)])
        return split(dX, lengths)

    return split(Y, lengths), backprop_lists


def split(rows: Floats2d, lengths: list[int]) -> list[Floats2d]:
    """Split the rows of an array into arrays of these lengths."""
    ends = np.cumsum(lengths)
    return [rows[end - length : end] for length, end in zip(lengths, ends, strict=True)]

"""`spacy-elmo.BiLSTMEncoder.v1`: an encoder of LSTM layers that read each sequence in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from thinc.api import Model, chain
from thinc.types import Floats2d
from thinc.util import get_width
from torch import Tensor

from ..bilm.kernels.fused_lstm import Clips
from ..bilm.kernels.matmul import matmul
from ..bilm.lstm import run_directions
from ..bilm.packing import Packing
from .torch_function import run

_NOT_CLIPPED = Clips(None, None)


def BiLSTMEncoder_v1(width: int, depth: int = 2) -> Model[list[Floats2d], list[Floats2d]]:
    """Build bidirectional LSTM layers, as the `encode` of an embedding. A text has the same vectors whatever else is in
    its batch, and averaged parameters (`use_averages`) are averaged here, too. Both are not true of
    `spacy.TorchBiLSTMEncoder.v1`.

    Args:
        width: width of the output, both directions together.
        depth: number of layers. `[training] dropout` is applied to the output of each.
    """
    layers = [bilstm(width) for _ in range(depth)]
    return chain(*layers) if depth > 1 else layers[0]


def bilstm(width: int) -> Model[list[Floats2d], list[Floats2d]]:
    """Build one bidirectional LSTM layer. Each direction reads a linear projection of the input to `width / 2`."""
    if width % 2:
        raise ValueError(
            f"The width of a BiLSTM is {width}; it must be even, for each direction is a half"
        )
    return Model(
        "bilstm",
        forward,
        init=init,
        dims={"nI": None, "nO": width},
        params=dict.fromkeys(("W", "b", "input", "recurrent", "bias")),
        attrs={"dropout_rate": 0.0},
    )


def init(model: Model, X: list[Floats2d] | None = None, Y: Any = None) -> None:
    """Draw the matrices from Glorot's uniform distribution. The bias of the forget gates is 1, other biases are 0."""
    if X is not None:
        model.set_dim("nI", get_width(X))
    inputs, width = model.get_dim("nI"), model.get_dim("nO") // 2
    shapes = {
        "W": (inputs, 2 * width),
        "input": (2, width, 4 * width),
        "recurrent": (2, width, 4 * width),
    }
    for name, shape in shapes.items():
        bound = (6 / sum(shape[-2:])) ** 0.5
        matrix: Any = np.random.uniform(-bound, bound, shape)
        model.set_param(name, model.ops.asarray_f(matrix))
    bias = model.ops.alloc2f(2, 4 * width)
    bias[:, 2 * width : 3 * width] = 1
    model.set_param("b", model.ops.alloc1f(2 * width))
    model.set_param("bias", bias)


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
        projected = matmul(x, parameters["W"], parameters["b"])
        orders = torch.from_numpy(packing.positions).to(x.device)
        halves = [
            half.index_select(0, order)
            for half, order in zip(projected.split(width, 1), orders, strict=True)
        ]
        start = x.new_zeros(2, len(lengths), width)
        weights = parameters["input"], parameters["recurrent"], parameters["bias"], None
        y, *_ = run_directions(
            torch.stack(halves), *weights, start, start, packing.batch_sizes, _NOT_CLIPPED, x.dtype
        )
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

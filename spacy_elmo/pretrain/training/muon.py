"""Muon for the matrices of a biLM, several of which share one parameter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ...bilm.lstm import LSTMLayer
from ...bilm.words.character_cnn import Dense

_MIN_SIZE = 64
_ALL = slice(None)


class MuonMatrix(NamedTuple):
    """One matrix inside a parameter."""

    parameter: nn.Parameter
    block: tuple[int | slice, ...]
    """Index of the matrix: `parameter[block]` is 2-D."""

    @property
    def values(self) -> Tensor:
        """The matrix itself, in the memory of the parameter."""
        return self.parameter.detach()[self.block]


def muon_matrices(bilm: nn.Module) -> list[MuonMatrix]:
    """Return the matrices of a biLM with at least 64 rows and 64 columns, which Muon updates.

    They are the input and recurrent matrices of the LSTM for each direction and gate, its projections, the highway
    layers and the projection of the character CNN. `LSTMLayer` stacks directions and gates for speed, but each gate is
    a linear map of its own, so each is orthogonalized alone. Embeddings, convolution filters and small matrices, of
    which orthogonal steps are not known to help, belong to AdamW.
    """
    return [matrix for matrix in _matrices(bilm) if min(matrix.values.shape) >= _MIN_SIZE]


def _matrices(bilm: nn.Module) -> Iterator[MuonMatrix]:
    for module in bilm.modules():
        if isinstance(module, Dense):
            yield MuonMatrix(module.weight, (_ALL, _ALL))
        elif isinstance(module, LSTMLayer):
            dim = module.bias.shape[1] // 4
            for direction in range(2):
                for gate in range(4):
                    columns = slice(gate * dim, (gate + 1) * dim)
                    yield MuonMatrix(module.input, (direction, _ALL, columns))
                    yield MuonMatrix(module.recurrent, (direction, _ALL, columns))
                if module.projection is not None:
                    yield MuonMatrix(module.projection, (direction,))


def muon(matrices: Sequence[MuonMatrix], learn_rate: float, weight_decay: float) -> Optimizer:
    """Return torch's Muon for matrices inside parameters.

    Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/) replaces the momentum of the gradient by a
    nearly orthogonal matrix, so that all directions change at the same rate. The step of an m x n matrix W with
    gradient G is

        B = 0.95 B + 0.05 G
        U = NewtonSchulz(0.95 B + 0.05 G), five iterations in bfloat16
        W = (1 - learn_rate weight_decay) W - 0.2 sqrt(max(m, n)) learn_rate U

    The factor 0.2 sqrt(max(m, n)), torch's `match_rms_adamw` (Liu et al. 2025, https://arxiv.org/abs/2502.16982), gives
    steps of the size of AdamW's, so that one learning rate is right for both.

    The optimizer holds a view of each matrix, which shares the memory of its parameter: its state dict has one momentum
    buffer per matrix, and a step changes the parameters themselves. A step also clears their gradients.

    Raises:
        ValueError: torch is older than 2.9.
    """
    if not hasattr(torch.optim, "Muon"):
        raise ValueError(f"Muon requires torch 2.9 or later, and this is torch {torch.__version__}")
    views = [nn.Parameter(matrix.values) for matrix in matrices]
    optimizer = torch.optim.Muon(
        views, lr=learn_rate, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
    )

    def pass_gradients(*_: Any) -> None:
        for view, matrix in zip(views, matrices, strict=True):
            gradient = matrix.parameter.grad
            view.grad = None if gradient is None else gradient[matrix.block]

    def clear_gradients(*_: Any) -> None:
        for matrix in matrices:
            matrix.parameter.grad = None

    optimizer.register_step_pre_hook(pass_gradients)
    optimizer.register_step_post_hook(clear_gradients)
    return optimizer

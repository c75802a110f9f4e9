"""The optimizer Muon for the matrices of a biLM. A parameter can contain several matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ...bilm.lstm import LSTMLayer
from ...bilm.words.dense import Dense
from .newton_schulz import nearly_orthogonal

_MIN_SIZE = 64
_ALL = slice(None)


class MuonMatrix(NamedTuple):
    """A matrix that Muon updates: a whole parameter, or a slice of a parameter."""

    parameter: nn.Parameter
    block: tuple[int | slice, ...]
    """Index of the matrix: `parameter[block]` is 2-D."""

    @property
    def values(self) -> Tensor:
        """The matrix, as a tensor that shares the memory of the parameter."""
        return self.parameter.detach()[self.block]


def muon_matrices(bilm: nn.Module) -> list[MuonMatrix]:
    """Return the matrices of a biLM that Muon updates. Each matrix has at least 64 rows and 64 columns.

    The function returns the input and recurrent matrices of the LSTM (one per direction and gate), the
    projections of the LSTM, the matrices of the highway layers and the projection of the token encoder. For
    speed, a parameter of `LSTMLayer` contains the matrices of both directions and all gates. But the gates
    are independent layers, so Muon orthogonalizes each matrix separately. AdamW updates embeddings,
    convolution filters and small matrices, because orthogonal steps are not known to help these parameters.
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


class Muon(Optimizer):
    """The optimizer Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/). A parameter can
    contain several matrices, such as the stacked gates of an LSTM.

    Muon updates a matrix by a nearly orthogonal matrix U instead of its momentum B, so all directions change
    at the same rate. The update of an m x n matrix W with gradient G is

        B = 0.95 B + 0.05 G
        U = nearly_orthogonal(0.95 B + 0.05 G)
        W = (1 - learn_rate weight_decay) W - 0.2 sqrt(max(m, n)) learn_rate U

    The factor 0.2 sqrt(max(m, n)) (Liu et al. 2025, https://arxiv.org/abs/2502.16982) makes the updates as
    large as the updates of AdamW, so Muon and AdamW can have the same learning rate.
    `torch.optim.Muon(adjust_lr_fn="match_rms_adamw")` makes the same updates except for rounding, but needs
    more time. State dicts of torch's Muon can be loaded.

    Each matrix shares the memory of its parameter. The state dict has one momentum B per matrix. `step` also
    clears the gradients of the parameters.

    `dtype` is the data type of the matrix products in `nearly_orthogonal`. The state dict contains `dtype`,
    so a run that is resumed on another processor keeps this data type.
    """

    def __init__(
        self,
        matrices: Sequence[MuonMatrix],
        learn_rate: float,
        weight_decay: float,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        self._matrices = matrices
        super().__init__(
            [nn.Parameter(matrix.values) for matrix in matrices],
            {"lr": learn_rate, "weight_decay": weight_decay, "momentum": 0.95, "dtype": dtype},
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a state. If the state contains no `dtype`, set bfloat16, because torch's Muon, which stores
        no `dtype`, always uses bfloat16."""
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("dtype", torch.bfloat16)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update all matrices whose parameters have a gradient."""
        (group,) = self.param_groups
        rate, momentum = group["lr"], group["momentum"]
        by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
        for values, matrix in zip(group["params"], self._matrices, strict=True):
            if matrix.parameter.grad is not None:
                pair = values, matrix.parameter.grad[matrix.block]
                by_shape.setdefault(values.shape, []).append(pair)
        # A GPU computes one product of many matrices faster than many products.
        for shape, pairs in by_shape.items():
            updates = torch.stack(
                [
                    gradient.lerp(self._momentum(values, gradient, momentum), momentum)
                    for values, gradient in pairs
                ]
            )
            updates = nearly_orthogonal(updates, group["dtype"])
            factor = -0.2 * math.sqrt(max(shape)) * rate
            for (values, _), update in zip(pairs, updates, strict=True):
                if group["weight_decay"]:
                    values.mul_(1 - rate * group["weight_decay"])
                values.add_(update, alpha=factor)
        for matrix in self._matrices:
            matrix.parameter.grad = None

    def _momentum(self, values: Tensor, gradient: Tensor, momentum: float) -> Tensor:
        """Return the momentum of a matrix, after its update with the gradient of this step."""
        state = self.state[values]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        buffer: Tensor = state["momentum_buffer"].lerp_(gradient, 1 - momentum)
        return buffer

"""Optimizers, among them Muon, the learning rate schedule, and gradient clipping."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..bilm.character_cnn import Dense
from ..bilm.head import Head
from ..bilm.lstm import LSTMLayer
from .config import Training

_ADAGRAD_ACCUMULATOR = 1 / 20**2
# Least number of rows and columns of a matrix that Muon updates.
_MIN_SIZE = 64
_ALL = slice(None)
# The coefficients of Jordan et al. 2024: an iteration maps each singular value s to a s + b s^3 + c s^5. The slope at 0
# is as steep as possible, and values between 0.7 and 1.2 stay there.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5
# Numbers of iterations on Gram matrices before each product with the flat matrix itself. Rounding to bfloat16 makes
# small eigenvalues of a Gram matrix negative, and these grow. After three iterations they are still small.
_GRAM_ITERATIONS = (3, 2)
# Least ratio of columns to rows for the use of Gram matrices. With a smaller ratio they save nothing.
_FLAT = 1.5


def optimizers(
    bilm: nn.Module, head: Head, settings: Training, dtype: torch.dtype
) -> list[Optimizer]:
    """Return the optimizers that `settings` choose for a biLM and its softmax head. Each parameter belongs to
    one optimizer.

    With the sampled softmax, a step should change only the rows of the head that have a gradient. Adagrad does so;
    with AdamW and Muon, `SparseAdam` updates the head.

    bilm-tf (`training.py`) multiplies the gradient of the mean loss per target by 20 (its unrolled steps), clips it
    at a norm of 10, and starts the accumulator of Adagrad at 1. The changes w -= rate g / sqrt(a + sum g^2) are the
    same if gradient and norm are divided by 20 and a by 400. So the settings of the paper are `grad_clip` = 0.5 and
    a learning rate of 0.2.

    Args:
        dtype: data type of the matrix products in Muon.
    """
    rate = settings.learn_rate
    if settings.optimizer == "adagrad":
        parameters = [*bilm.parameters(), *head.parameters()]
        return [
            torch.optim.Adagrad(
                parameters, lr=rate, initial_accumulator_value=_ADAGRAD_ACCUMULATOR, eps=0.0
            )
        ]
    optimizers: list[Optimizer] = []
    matrices = muon_matrices(bilm) if settings.optimizer == "muon" else []
    if matrices:
        optimizers.append(Muon(matrices, rate, dtype))
    by_muon = {id(matrix.parameter) for matrix in matrices}
    others = [parameter for parameter in bilm.parameters() if id(parameter) not in by_muon]
    rows = list(head.parameters())
    if settings.negatives is None:
        others += rows
    # A fused step reads and writes each number once, and takes a fifth of the time.
    optimizers.append(torch.optim.AdamW(others, lr=rate, weight_decay=0.0, fused=True))
    if settings.negatives is not None:
        optimizers.append(torch.optim.SparseAdam(rows, lr=rate))
    return optimizers


def take_step(optimizers: Iterable[Optimizer], rate: float) -> None:
    """Update the parameters with the learning rate `rate`, and clear their gradients."""
    # torch's Adagrad warns that it creates sparse tensors without checks. They have the rows of the gradient, so they
    # are valid.
    with torch.sparse.check_sparse_tensor_invariants(False):
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()


def learn_rate(settings: Training, step: int, steps: int) -> float:
    """Return the learning rate of the step with the index `step` of a run of `steps` steps (0: unknown, so there is
    no cooldown).

    The schedule is a linear warm-up, a constant peak, and a linear cooldown to a hundredth of the peak. Because the
    peak is constant (Hägele et al. 2024), a run can be made longer at any time before the cooldown.
    """
    warmup = cooldown = 1.0
    if step < settings.warmup_steps:
        warmup = (step + 1) / settings.warmup_steps
    if steps and settings.cooldown:
        # If a limit of epochs or words ends the run, `steps` is an estimate, and the run may take a few steps more.
        remaining = max(1 - step / steps, 0.0)
        cooldown = 0.01 + 0.99 * min(remaining / settings.cooldown, 1.0)
    # In a short run, the cooldown can begin before the end of the warm-up.
    return settings.learn_rate * min(warmup, cooldown)


def clip_gradients(parameters: Iterable[nn.Parameter], limit: float) -> float:
    """Scale all gradients by one factor, so that their common norm is at most `limit`. Return the norm before
    scaling."""
    values: list[Tensor] = []
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            values.append(parameter.grad.values())
        else:
            values.append(parameter.grad)
    norm = float(torch.stack([value.norm() for value in values]).norm())
    if norm > limit:
        for value in values:
            value.mul_(limit / norm)
    return norm


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
    """Return the matrices of a biLM that Muon updates: those of the LSTM (one per direction and gate), of the highway
    layers and of the projections, with at least 64 rows and 64 columns.

    The gates and directions in one parameter of `LSTMLayer` are independent layers, so each is orthogonalized
    separately. AdamW updates the other parameters, which are not known to gain from orthogonal steps.
    """
    matrices = []
    for module in bilm.modules():
        if isinstance(module, Dense):
            matrices.append(MuonMatrix(module.weight, (_ALL, _ALL)))
        elif isinstance(module, LSTMLayer):
            dim = module.bias.shape[1] // 4
            for direction in range(2):
                for gate in range(4):
                    columns = slice(gate * dim, (gate + 1) * dim)
                    matrices.append(MuonMatrix(module.input, (direction, _ALL, columns)))
                    matrices.append(MuonMatrix(module.recurrent, (direction, _ALL, columns)))
                if module.projection is not None:
                    matrices.append(MuonMatrix(module.projection, (direction,)))
    return [matrix for matrix in matrices if min(matrix.values.shape) >= _MIN_SIZE]


class Muon(Optimizer):
    """The optimizer Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/). A parameter can
    contain several matrices, such as the stacked gates of an LSTM.

    Muon updates a matrix by a nearly orthogonal matrix U instead of its momentum B, so all directions change
    at the same rate. The update of an m x n matrix W with gradient G is

        B = 0.95 B + 0.05 G
        U = nearly_orthogonal(0.95 B + 0.05 G)
        W = W - 0.2 sqrt(max(m, n)) learn_rate U

    The factor 0.2 sqrt(max(m, n)) (Liu et al. 2025, https://arxiv.org/abs/2502.16982) makes the updates as large as
    those of AdamW, so both can have the same learning rate. `torch.optim.Muon(adjust_lr_fn="match_rms_adamw")` makes
    the same updates except for rounding, but needs more time.

    Each matrix shares the memory of its parameter, and `step` also clears the gradients. `dtype` is the data type of
    the matrix products. It is in the state dict, so a run that is resumed on another processor keeps it.
    """

    def __init__(
        self,
        matrices: Sequence[MuonMatrix],
        learn_rate: float,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        self._matrices = matrices
        super().__init__(
            [nn.Parameter(matrix.values) for matrix in matrices],
            {"lr": learn_rate, "momentum": 0.95, "dtype": dtype},
        )

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


def nearly_orthogonal(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """Return matrices of the type `dtype` with the singular vectors of `matrices`, (matrices, rows, columns), and
    singular values between 0.7 and 1.2 (less if a value is below a thousandth of the norm of its matrix).

    The iterations are those of `torch.optim.Muon`: five times X <- (a + b R + c R^2) X with R = X X^T. For flat
    matrices, the factors of several iterations are first multiplied with each other, which takes fewer operations:
    R changes by R <- (a + b R + c R^2)^2 R, because the factors are symmetric and commute.
    """
    _, rows, columns = matrices.shape
    if rows > columns:
        return nearly_orthogonal(matrices.mT, dtype).mT
    x = (matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)).to(dtype)
    return _by_gram_matrices(x) if columns >= _FLAT * rows else _by_products(x)


def _by_products(x: Tensor) -> Tensor:
    for _ in range(_ITERATIONS):
        x = torch.baddbmm(x, _without_shift(x @ x.mT), x, beta=_A)
    return x


def _by_gram_matrices(x: Tensor) -> Tensor:
    for iterations in _GRAM_ITERATIONS:
        gram = x @ x.mT
        product = factor = _factor(gram)
        for _ in range(iterations - 1):
            gram = factor @ (factor @ gram)
            factor = _factor(gram)
            product = factor @ product
        x = product @ x
    return x


def _factor(gram: Tensor) -> Tensor:
    """Return `_A` + `_B` R + `_C` R^2 for each Gram matrix R."""
    factor = _without_shift(gram)
    factor.diagonal(dim1=1, dim2=2).add_(_A)
    return factor


def _without_shift(gram: Tensor) -> Tensor:
    """Return `_B` R + `_C` R^2 for each Gram matrix R."""
    return torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C)

"""Optimizers, among them Muon, the learning rate schedule, and gradient clipping."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..bilm.head import Head
from ..bilm.lstm import LSTMLayer
from ..bilm.words.dense import Dense
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

    With the sampled softmax, a training step should change only the rows of the head that have a gradient.
    Adagrad changes only these rows. With AdamW and Muon, the optimizer of the head is `SparseAdam`, which
    updates only the moments of these rows. With the full softmax, all rows change, so AdamW updates the head
    too.

    bilm-tf (`training.py`) multiplies the gradient of the mean loss per target by 20, the number of unrolled
    time steps. It clips this gradient at a norm of 10, and initializes the accumulator of Adagrad with 1.
    This function does not multiply the gradient. Adagrad changes a weight w with gradients g and the initial
    accumulator a by w -= rate g / sqrt(a + sum g^2). The change stays the same if g and the maximum norm are
    divided by 20, and a by 400. So the settings of the paper are `grad_clip` = 0.5 and a learning rate of
    0.2.

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
        optimizers.append(Muon(matrices, rate, settings.weight_decay, dtype))
    groups = decay_groups(bilm, without=[matrix.parameter for matrix in matrices])
    rows = list(head.parameters())
    if settings.negatives is None:
        groups.append({"params": rows, "weight_decay": 0.0})
    # A fused step reads and writes each number once, and takes a fifth of the time.
    optimizers.append(
        torch.optim.AdamW(groups, lr=rate, weight_decay=settings.weight_decay, fused=True)
    )
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


def decay_groups(bilm: nn.Module, without: Sequence[nn.Parameter] = ()) -> list[dict[str, Any]]:
    """Return the parameter groups of AdamW. Weight decay applies to all parameters except biases.

    Args:
        without: parameters to leave out, because they have another optimizer.
    """
    others = {id(parameter) for parameter in without}
    named = [(name, p) for name, p in bilm.named_parameters() if id(p) not in others]
    biases = [p for name, p in named if "bias" in name]
    return [
        {"params": [p for name, p in named if "bias" not in name]},
        {"params": biases, "weight_decay": 0.0},
    ]


def learn_rate(settings: Training, step: int, steps: int) -> float:
    """Return the learning rate of a training step. The schedule is a linear warm-up, a constant peak, and a
    linear cooldown to a hundredth of the peak.

    Because the peak is constant (Hägele et al. 2024), you can make a run longer at any time before the
    cooldown.

    Args:
        step: index of the step, from 0.
        steps: number of steps of the whole run; 0: unknown, so there is no cooldown.
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
    more time.

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


def nearly_orthogonal(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """Return matrices with the singular vectors of `matrices`, and with singular values between 0.7 and 1.2.

    A singular value that is less than about a thousandth of the norm of its matrix becomes larger, but stays
    below 0.7.

    The iterations are the same as in `torch.optim.Muon`: five times X <- (a + b R + c R^2) X with the Gram
    matrix R = X X^T and constants a, b, c.

    If X has at least 1.5 times as many columns as rows, the same result is computed with fewer operations.
    First the factors a + b R + c R^2 of several iterations are multiplied with each other. Between the
    iterations, R changes by R <- (a + b R + c R^2)^2 R, because the factors are symmetric and commute.

    Args:
        matrices: (matrices, rows, columns), of any float type.
        dtype: data type of the matrix products. bfloat16, which torch uses, is exact enough.

    Returns:
        Tensor of the same shape, of the type `dtype`.
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

"""Optimizers, learning rate schedule, and gradient clipping."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ...bilm.head import Head
from ..config import Training
from .muon import Muon, muon_matrices

_ADAGRAD_ACCUMULATOR = 1 / 20**2


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

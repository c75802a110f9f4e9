"""What stands around the optimizer: parameter groups, the learning rate of a step, clipping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from .config import Training


def decay_groups(bilm: nn.Module) -> list[dict[str, Any]]:
    """AdamW's parameter groups: weight decay pulls at matrices, never at biases."""
    named = list(bilm.named_parameters())
    biases = [p for name, p in named if "bias" in name]
    return [
        {"params": [p for name, p in named if "bias" not in name]},
        {"params": biases, "weight_decay": 0.0},
    ]


def learn_rate(settings: Training, step: int, steps: int) -> float:
    """Linear warm-up, the peak, and over the last `cooldown` of the run a line down to a hundredth of it.

    A flat middle (Hägele et al. 2024), not a cosine: a run can be given a later end until its cooldown begins.

    Args:
        steps: of the whole run; 0: not known, so that there is no cooldown.
    """
    if step < settings.warmup_steps:
        return settings.learn_rate * (step + 1) / settings.warmup_steps
    left = 1 - step / steps if steps else 1.0
    return settings.learn_rate * (
        0.01 + 0.99 * min(max(left, 0.0) / max(settings.cooldown, 1e-9), 1.0)
    )


def clip_gradients(parameters: Iterable[nn.Parameter], limit: float) -> float:
    """Scale all gradients, dense and sparse, so that their global norm is at most `limit`; returns the norm before."""
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

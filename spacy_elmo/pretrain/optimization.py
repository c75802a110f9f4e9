"""What stands around the optimizer: parameter groups, the learning rate of a step, clipping."""

from __future__ import annotations

import math
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
    """Linear warm-up, then half a cosine from the peak to a hundredth of it at `steps`; constant if `steps` is 0."""
    if step < settings.warmup_steps:
        return settings.learn_rate * (step + 1) / settings.warmup_steps
    if not steps:
        return settings.learn_rate
    done = (step - settings.warmup_steps) / max(steps - settings.warmup_steps, 1)
    return settings.learn_rate * (0.01 + 0.99 * (1 + math.cos(math.pi * min(done, 1.0))) / 2)


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

"""What turns gradients into steps: the optimizers, the learning rate of a step, clipping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ...bilm.head import Head
from ..config import Training

_ADAGRAD_START = 1 / 20**2


def optimizers(bilm: nn.Module, head: Head, settings: Training) -> list[Optimizer]:
    """The optimizers of `settings`, which together hold every parameter once.

    A step of the sampled softmax touches a few rows of the head. Adagrad's rule leaves the others alone by itself;
    with AdamW, `SparseAdam` moves the moments of the touched rows only. Under the full softmax all rows are touched,
    their gradient is dense, and the head is one more group of AdamW.

    bilm-tf (`training.py`) gives Adagrad 20 times the gradient of the mean loss per target (20 is its number of
    unrolled steps), clipped at 10, and starts its accumulator at 1. The step w -= rate g / sqrt(start + sum g^2)
    stays the same when g and the clip are divided by 20 and the start by 400. So it is written here: our gradient is
    that of the mean, the paper's clip is a `grad_clip` of 0.5, and its learning rate remains 0.2.
    """
    rate = settings.learn_rate
    if settings.optimizer == "adagrad":
        parameters = [*bilm.parameters(), *head.parameters()]
        return [
            torch.optim.Adagrad(
                parameters, lr=rate, initial_accumulator_value=_ADAGRAD_START, eps=0.0
            )
        ]
    groups, rows = decay_groups(bilm), list(head.parameters())
    if settings.negatives is None:
        groups.append({"params": rows, "weight_decay": 0.0})
    found: list[Optimizer] = [
        torch.optim.AdamW(groups, lr=rate, weight_decay=settings.weight_decay)
    ]
    if settings.negatives is not None:
        found.append(torch.optim.SparseAdam(rows, lr=rate))
    return found


def take_step(optimizers: Iterable[Optimizer], rate: float) -> None:
    """Change the parameters at this learning rate; the gradients are used up."""
    # torch's Adagrad makes sparse tensors and is itself warned that nobody checks them: their rows are the gradient's.
    with torch.sparse.check_sparse_tensor_invariants(False):
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()


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
    if not steps or not settings.cooldown:
        return settings.learn_rate
    # The number of steps is an estimate where epochs or words end the run: it may take a few more.
    left = max(1 - step / steps, 0.0)
    return settings.learn_rate * (0.01 + 0.99 * min(left / settings.cooldown, 1.0))


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

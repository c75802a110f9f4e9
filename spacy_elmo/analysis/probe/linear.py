"""A linear classifier of frozen vectors, by one recipe for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

EPOCHS = 10
BATCH = 256
LEARNING_RATE = 3e-3
"""Of Adam, falling to 0 in a straight line."""

Labelled = tuple[np.ndarray, np.ndarray]
"""(n, width) float32 vectors, and the (n,) int64 classes of them; -1: one that does not occur in training."""


@dataclass(frozen=True)
class Linear:
    """argmax(x W + b), of (n, width) vectors x."""

    weight: Tensor
    """(width, classes)"""
    bias: Tensor
    """(classes,)"""

    def accuracy(self, vectors: np.ndarray, classes: np.ndarray) -> float:
        """The share of vectors whose class is found."""
        found = (torch.from_numpy(vectors) @ self.weight + self.bias).argmax(1)
        return float((found.numpy() == classes).mean())


def fit_linear(train: Labelled, dev: Labelled, n_classes: int, *, seed: int) -> Linear:
    """Softmax regression, by Adam from zeros; of the states after each epoch, that with the best accuracy on `dev`.

    Each dimension of the vectors is scaled by its mean and standard deviation in `train`, and that is folded into the
    result: so layers of different magnitude are learnt by the same recipe, and the classifier stays a linear one.

    Args:
        seed: of the order in which the vectors are learnt.
    """
    x, classes = torch.from_numpy(train[0]), torch.from_numpy(train[1])
    mean, scale = x.mean(0), x.std(0, correction=0).clamp_min(1e-6)
    generator = torch.Generator().manual_seed(seed)
    weight = torch.zeros(x.shape[1], n_classes, requires_grad=True)
    bias = torch.zeros(n_classes, requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias], lr=LEARNING_RATE)
    steps = EPOCHS * -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    best, best_accuracy = None, -1.0
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            scores = (x[rows] - mean) / scale @ weight + bias
            optimizer.zero_grad()
            nn.functional.cross_entropy(scores, classes[rows]).backward()
            optimizer.step()
            schedule.step()
        state = _folded(weight.detach(), bias.detach(), mean, scale)
        if (accuracy := state.accuracy(*dev)) > best_accuracy:
            best, best_accuracy = state, accuracy
    assert best is not None  # there is an epoch, and its accuracy is at least 0
    return best


def _folded(weight: Tensor, bias: Tensor, mean: Tensor, scale: Tensor) -> Linear:
    """The same classifier, for vectors that are not scaled."""
    weight = weight / scale[:, None]
    return Linear(weight, bias - mean @ weight)

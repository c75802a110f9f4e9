"""Linear classifier that the probes train on the vectors of a layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

EPOCHS = 10
BATCH = 256
"""Number of vectors per training step."""
LEARNING_RATE = 3e-3
"""Initial learning rate of Adam, which decays linearly to 0."""

Labelled = tuple[np.ndarray, np.ndarray]
"""Vectors, (n, width) float32, and their classes, (n,) int64; -1: a class that does not occur in training."""


@dataclass(frozen=True)
class LinearClassifier:
    """Linear classifier. The class of a vector x is the index of the largest number in x W + b."""

    weight: Tensor
    """Matrix W, (width, classes)."""
    bias: Tensor
    """Bias b, (classes,)."""

    def accuracy(self, vectors: np.ndarray, classes: np.ndarray) -> float:
        """Return the share of n vectors, (n, width), that get their correct class in `classes`, (n,)."""
        predicted = (torch.from_numpy(vectors) @ self.weight + self.bias).argmax(1)
        return float((predicted.numpy() == classes).mean())


def fit_linear(train: Labelled, dev: Labelled, n_classes: int, *, seed: int) -> LinearClassifier:
    """Train a softmax regression with Adam. Return the classifier of the epoch with the best accuracy on
    `dev`.

    Each dimension of the vectors is standardized by its mean and standard deviation in `train`, so that the
    same learning rate suits layers with vectors of different magnitudes. The standardization is part of the
    returned classifier, which is still linear.

    Args:
        train, dev: vectors, (n, width), and their classes, (n,).
        seed: random seed for the order of the training vectors.
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
        state = _unscaled(weight.detach(), bias.detach(), mean, scale)
        if (accuracy := state.accuracy(*dev)) > best_accuracy:
            best, best_accuracy = state, accuracy
    assert best is not None  # there is at least one epoch, with an accuracy of at least 0
    return best


def _unscaled(weight: Tensor, bias: Tensor, mean: Tensor, scale: Tensor) -> LinearClassifier:
    """Convert a classifier of standardized vectors to an equivalent classifier of the original vectors."""
    weight = weight / scale[:, None]
    return LinearClassifier(weight, bias - mean @ weight)

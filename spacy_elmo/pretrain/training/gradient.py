"""Gradient of a step: its batch is divided into parts, which several processes compute."""

from __future__ import annotations

import numpy as np
import torch

from ...bilm.head import Head, Negatives
from ...bilm.model import BiLM
from ..config import Training
from ..corpus.prepared import Sentences
from ..objective import Batcher, loss_sum
from .distributed import Ranks
from .optimization import clip_gradients


class Gradient:
    """Computation of the gradients of a network and its head for one step.

    A batch is divided into `accumulate_gradient` parts for each process, and all parts have the same negatives. Each
    loss is divided by the number of targets of the whole batch, so the gradients of the parts add up to that of the
    batch, however it is divided.
    """

    def __init__(
        self,
        bilm: BiLM,
        head: Head,
        batcher: Batcher,
        sentences: Sentences,
        settings: Training,
        ranks: Ranks,
    ) -> None:
        self._bilm, self._head, self._batcher = bilm, head, batcher
        self._sentences, self._settings, self._ranks = sentences, settings, ranks
        self._dense, self._sparse = list(bilm.parameters()), list(head.parameters())
        if settings.negatives is None:
            self._dense, self._sparse = self._dense + self._sparse, []

    def __call__(self, rows: np.ndarray, step: int, autocast_dtype: str) -> tuple[float, float]:
        """Fill the gradients by a forward and a backward pass. Random numbers depend on the seed and `step` alone.

        Args:
            rows: indices of the sentences of the batch.
            autocast_dtype: `"float32"` or `"bfloat16"`.

        Returns:
            The mean loss per target in nats, and the norm of the gradient before clipping; both of the whole batch.
        """
        settings = self._settings
        random = np.random.default_rng([settings.seed, step])
        negatives = self._negatives(random)
        parts = self._ranks.size * settings.accumulate_gradient
        seeds = random.integers(2**63, size=parts)
        targets = 2 * (self._sentences.words(rows) + len(rows))
        use_bfloat16, device = autocast_dtype == "bfloat16", self._bilm.device.type
        mean = 0.0
        for part in range(self._ranks.rank, min(parts, len(rows)), self._ranks.size):
            batch = self._batcher(*self._sentences.take(rows[part::parts]))
            torch.manual_seed(int(seeds[part]))
            with torch.autocast(device, torch.bfloat16, enabled=use_bfloat16):
                total = loss_sum(self._bilm, self._head, batch, negatives, settings.dropout)
                loss = total / targets
            loss.backward()
            mean += float(loss.detach())
        self._ranks.sum_gradients(self._dense, self._sparse)
        norm = clip_gradients([*self._dense, *self._sparse], settings.grad_clip)
        return self._ranks.sum(mean), norm

    def _negatives(self, random: np.random.Generator) -> list[Negatives] | None:
        """Return one draw per direction, or None for the full softmax."""
        if self._settings.negatives is None:
            return None
        size = len(self._head.weight)
        return [Negatives(size, min(self._settings.negatives, size), random) for _ in range(2)]

"""The gradient of a step: its batch in parts, read one after the other and by all processes."""

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
    """Fills the gradients of a network and its head, so that one step can be taken.

    A batch is divided into as many parts as there are processes, times `accumulate_gradient`: each process takes its
    share of them, and all parts meet the same negatives. Every loss is divided by the number of targets of the whole
    batch, so the parts' gradients sum up to that of the batch, however it was divided.
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

    def __call__(self, rows: np.ndarray, step: int, precision: str) -> tuple[float, float]:
        """Read a batch forward and backward. What is drawn follows from the seed and the step's number alone.

        Args:
            rows: its sentences.
            precision: `"float32"` or `"bfloat16"`.

        Returns:
            The mean loss per target in nats, and the gradient's norm before it was clipped; both of the whole batch.
        """
        settings = self._settings
        random = np.random.default_rng([settings.seed, step])
        negatives = self._negatives(random)
        parts = self._ranks.size * settings.accumulate_gradient
        seeds = random.integers(2**63, size=parts)
        targets = 2 * (self._sentences.words(rows) + len(rows))
        low, device = precision == "bfloat16", self._bilm.device.type
        mean = 0.0
        for part in range(self._ranks.number, min(parts, len(rows)), self._ranks.size):
            batch = self._batcher(*self._sentences.take(rows[part::parts]))
            torch.manual_seed(int(seeds[part]))
            with torch.autocast(device, torch.bfloat16, enabled=low):
                total = loss_sum(self._bilm, self._head, batch, negatives, settings.dropout)
                loss = total / targets
            loss.backward()
            mean += float(loss.detach())
        self._ranks.sum_gradients(self._dense, self._sparse)
        norm = clip_gradients([*self._dense, *self._sparse], settings.grad_clip)
        return self._ranks.sum(mean), norm

    def _negatives(self, random: np.random.Generator) -> list[Negatives] | None:
        """A draw for each direction; None: the full softmax."""
        if self._settings.negatives is None:
            return None
        size = len(self._head.weight)
        return [Negatives(size, min(self._settings.negatives, size), random) for _ in range(2)]

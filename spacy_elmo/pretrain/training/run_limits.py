"""Position of a run: its progress so far, and the limits that end it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..config import Training


@dataclass
class Position:
    """Progress of a run, which a checkpoint contains."""

    step: int = 0
    """Number of steps taken."""
    epoch: int = 0
    """Number of complete passes over the corpus."""
    batch: int = 0
    """Number of the next batch in the current pass."""
    tokens: int = 0
    """Number of training words processed."""
    seconds: float = 0.0
    """Seconds spent in training steps, summed over all resumed parts of the run."""
    best: float = math.inf
    """Best held-out perplexity."""
    best_step: int = 0
    """Number of steps at which `best` was measured."""

    def is_at_end(self, settings: Training) -> bool:
        """Return True if a limit (steps, epochs, tokens, minutes, patience) ends the run here."""
        limits = (
            (settings.max_steps, self.step),
            (settings.max_epochs, self.epoch),
            (settings.max_tokens, self.tokens),
            (settings.max_minutes, self.seconds / 60),
            (settings.patience, self.step - self.best_step),
        )
        return any(limit is not None and value >= limit for limit, value in limits)


def total_steps(settings: Training, *, epoch_steps: int, epoch_tokens: int) -> int:
    """Return the number of steps that the limits of steps, epochs and tokens allow, or 0 if there is none of them.

    It is an estimate for epochs and tokens, because the number of batches differs a little between epochs.

    Args:
        epoch_steps, epoch_tokens: number of batches and words of an epoch.
    """
    limits = [
        settings.max_steps,
        settings.max_epochs and settings.max_epochs * epoch_steps,
        settings.max_tokens and math.ceil(settings.max_tokens / (epoch_tokens / epoch_steps)),
    ]
    return min((limit for limit in limits if limit), default=0)

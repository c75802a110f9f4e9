"""The training log of a pretraining run, `log.jsonl`. Each line is a row of the log."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

from ..perplexity import Perplexity


@dataclass(frozen=True)
class Progress:
    """One row of `log.jsonl`: the progress of a run after a training step."""

    step: int
    steps: int
    """Estimated number of steps of the whole run, from the limits `max_steps`, `max_epochs` and `max_tokens`;
    0 if none of these limits is set."""
    epoch: float
    """Number of passes over the corpus so far, with a fraction for the current pass."""
    tokens: int
    """Number of training words processed so far."""
    loss: float | None
    """Mean training loss per target since the row before, in nats; None at step 0. The loss of a sampled
    softmax cannot be compared with a held-out perplexity, nor the loss with a teacher with another loss."""
    learn_rate: float
    grad_norm: float
    """Gradient norm of the last step, before clipping."""
    tokens_per_second: float
    minutes: float
    """Minutes spent in training steps, summed over all resumed parts of the run."""
    dev: Perplexity | None = None
    """Held-out perplexity; None if it was not computed at this step."""
    best: bool = False
    """True if `dev` is the best held-out perplexity so far."""


def append_row(log: Path, progress: Progress) -> None:
    """Append a row to the log file."""
    # srsly would round to ten decimals and reject the infinite perplexity of a diverged run.
    with log.open("a", encoding="utf8") as file:
        file.write(json.dumps(dataclasses.asdict(progress)) + "\n")


def truncate(log: Path, step: int) -> None:
    """Remove the rows of all steps after `step`, because a resumed run writes these rows again. Also remove
    an incomplete last row."""
    if not log.exists():
        return
    size = 0
    with log.open("rb") as file:
        for row in file:
            try:
                is_later = json.loads(row)["step"] > step
            except (KeyError, TypeError, ValueError):
                is_later = True
            if is_later or not row.endswith(b"\n"):
                break
            size += len(row)
    os.truncate(log, size)

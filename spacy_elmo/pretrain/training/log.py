"""`log.jsonl`: what a run says of itself, a row at a time."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

from ..scoring.perplexity import Perplexity


@dataclass(frozen=True)
class Progress:
    """A row of `log.jsonl`."""

    step: int
    steps: int
    """Of the whole run, as far as the limits of steps, epochs and tokens tell; 0 if only minutes limit it."""
    epoch: float
    """Passes over the corpus so far."""
    tokens: int
    """Words read in training so far."""
    loss: float
    """Mean of the training loss since the last row, in nats; that of the sampled softmax does not compare with a
    held-out perplexity."""
    learn_rate: float
    grad_norm: float
    """Before clipping, of the last step."""
    tokens_per_second: float
    minutes: float
    """Of training steps, over all resumes."""
    dev: Perplexity | None = None
    """Held-out, at the steps where it was measured."""
    best: bool = False
    """The best held-out perplexity so far."""


def append(log: Path, progress: Progress) -> None:
    """Add a row."""
    with log.open("a", encoding="utf8") as file:
        file.write(json.dumps(dataclasses.asdict(progress)) + "\n")


def cut(log: Path, step: int) -> None:
    """Drop the rows after the checkpoint, which will be written again, and what a kill left of the last row."""
    if not log.exists():
        return
    keep = 0
    with log.open("rb") as file:
        for row in file:
            try:
                later = json.loads(row)["step"] > step
            except (KeyError, TypeError, ValueError):
                later = True
            if later or not row.endswith(b"\n"):
                break
            keep += len(row)
    os.truncate(log, keep)

"""The log of a run, `log.jsonl`: one row per report."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

from ..perplexity import Perplexity


@dataclass(frozen=True)
class Progress:
    """One row of `log.jsonl`."""

    step: int
    steps: int
    """Steps of the whole run by the limits of steps, epochs and tokens (an estimate); 0 if only minutes limit it."""
    epoch: float
    """Passes over the corpus so far."""
    tokens: int
    """Training words processed so far."""
    loss: float | None
    """Mean training loss since the last row, in nats; that of the sampled softmax is not comparable with a held-out
    perplexity. None at step 0."""
    learn_rate: float
    grad_norm: float
    """Gradient norm of the last step, before clipping."""
    tokens_per_second: float
    minutes: float
    """Minutes spent in training steps, summed over all resumed parts of the run."""
    dev: Perplexity | None = None
    """Held-out perplexity, at the steps where it was computed."""
    best: bool = False
    """True: `dev` is the best held-out perplexity so far."""


def append_row(log: Path, progress: Progress) -> None:
    """Append a row to the log."""
    # Not by srsly, which rounds to ten decimals and refuses the infinite perplexity of a run that has diverged.
    with log.open("a", encoding="utf8") as file:
        file.write(json.dumps(dataclasses.asdict(progress)) + "\n")


def truncate(log: Path, step: int) -> None:
    """Remove the rows after `step`, which the resumed run will write again, and any incomplete row."""
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

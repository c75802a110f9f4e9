"""How long a run will take and how much memory it needs: measured, by its first steps."""

from __future__ import annotations

import itertools
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch

from ..config import PretrainConfig
from ..corpus.prepared import Corpus
from ..training.loop import pretrain

_STEPS = 5
_EVAL_TOKENS = 4096


@dataclass(frozen=True)
class Estimate:
    """What a run would be like on this machine, as busy as it is now."""

    words_per_second: float
    words: int | None
    """Read by the whole run; None: its limits do not say."""
    minutes: float | None
    """Of training steps, without evaluations and checkpoints; None: not known."""
    memory: int | None
    """Peak in bytes: of the GPU's, or of this process, all that it did before included; None: the system does not say.
    """


def estimate(config: PretrainConfig, corpus: Corpus, device: torch.device) -> Estimate:
    """Take a few steps of a run and one small evaluation, and throw them away.

    Not arithmetic: half of a step is no matrix product, and how much of it depends on the machine and the shape.

    Raises:
        OSError, ValueError: as of `pretrain`, which the run would raise too.
    """
    limits = config.training
    steps = min(limits.max_steps or _STEPS, _STEPS)
    trial = limits.model_copy(
        update={"log_every": 1, "eval_every": steps, "eval_tokens": _EVAL_TOKENS, "save_every": 1 << 60}
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        config = config.model_copy(update={"training": trial})
        rows = [*itertools.islice(pretrain(config, corpus, Path(folder), device=device), steps)]
    first, last = rows[0], rows[-1]
    # The first step also warms up caches and allocates.
    if last.step > 1:
        speed = (last.tokens - first.tokens) / max(60 * (last.minutes - first.minutes), 1e-9)
    else:
        speed = last.tokens_per_second
    words = None
    if last.steps:
        words = round(last.steps * last.epoch / last.step * len(corpus.train.ids))
    minutes = [limits.max_minutes, words / speed / 60 if words is not None else None]
    return Estimate(
        words_per_second=speed,
        words=words,
        minutes=min((value for value in minutes if value is not None), default=None),
        memory=_peak(device),
    )


def _peak(device: torch.device) -> int | None:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak

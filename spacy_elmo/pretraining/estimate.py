"""Estimation of the time and memory that a pretraining run needs, from a few training steps."""

from __future__ import annotations

import itertools
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch

from .config import PretrainConfig
from .corpus.prepared import Corpus
from .training.initial_weights import GivenWeights
from .training.loop import train

_STEPS = 5
_EVAL_TOKENS = 4096


@dataclass(frozen=True)
class Estimate:
    """Estimated speed, time and memory of a run on this machine under its current load."""

    words_per_second: float
    words: int | None
    """Number of words that the whole run processes; None if the limits do not determine this number."""
    minutes: float | None
    """Minutes that all training steps need, without evaluations and checkpoints; None: unknown."""
    memory: int | None
    """Peak memory in bytes. On a GPU, this is the memory of the GPU. Otherwise it is the memory of this
    process, including all earlier work of the process. None if the system does not report the peak.
    """


def estimate(
    config: PretrainConfig, corpus: Corpus, device: torch.device, given: GivenWeights
) -> Estimate:
    """Estimate the time and memory of a run. The function executes a few training steps and one small
    evaluation, and discards their results.

    The time must be measured, because matrix products take only about half of the time of a step.

    Args:
        given: the weights files that the config names.

    Raises:
        OSError, ValueError: the training steps have failed. The run itself would raise the same error.
    """
    limits = config.training
    steps = min(limits.max_steps or _STEPS, _STEPS)
    trial = limits.model_copy(
        update={"log_every": 1, "eval_every": steps, "eval_tokens": _EVAL_TOKENS, "save_every": 1 << 60}
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        config = config.model_copy(update={"training": trial})
        run = train(config, corpus, Path(folder), given=given, device=device)
        rows = [*itertools.islice((row for row in run if row.step), steps)]
    first, last = rows[0], rows[-1]
    # The first step is left out, because it also fills caches and allocates memory.
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

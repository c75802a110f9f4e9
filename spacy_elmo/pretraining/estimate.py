"""What is known before a pretraining run: statistics of its corpus, and its time and memory, from a few steps."""

from __future__ import annotations

import itertools
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from .config import PretrainConfig, Training
from .corpus import Corpus, Sentences
from .source_weights import SourceWeights, run_vocabulary
from .trainer import train

_STEPS = 5
_EVAL_TOKENS = 4096


@dataclass(frozen=True)
class Statistics:
    """Statistics of a corpus. "Words" means all occurrences of words in the training part."""

    vocab_size: int
    """Number of softmax classes."""
    covered: float
    """Share of words with a softmax class. The other words are `<UNK>` as targets, but not as input."""
    held_out_covered: float
    """Share of the words in the held-out part that have a softmax class."""
    long_words: float
    """Share of words with more bytes than `model.max_characters` allows. The rest of such a word is
    ignored."""
    long_sentences: float
    """Share of the training sentences that are split because they have more than `training.max_length`
    words."""
    passes: float | None
    """Number of times that the run reads the training part, by its limits of steps, epochs and words; None if it
    has none of these limits."""


def statistics(config: PretrainConfig, corpus: Corpus, sources: SourceWeights) -> Statistics:
    """Return the statistics of a corpus for a run with the settings `config` and the weights `sources`."""
    vocabulary = run_vocabulary(config, corpus, sources)
    classes = set(vocabulary)
    known = np.fromiter((word in classes for word in corpus.types), bool, len(corpus.types))
    known[:3] = False  # <S>, </S> and <UNK>, even if the text itself contains "<UNK>"
    max_bytes = config.bilm.max_characters - 2
    long = np.fromiter((len(word.encode()) > max_bytes for word in corpus.types), bool, len(known))
    words = max(len(corpus.train.ids), 1)
    held_out = _counts(corpus.dev, len(corpus.types))
    return Statistics(
        vocab_size=len(vocabulary),
        covered=int(corpus.counts[known].sum()) / words,
        held_out_covered=int(held_out[known].sum()) / max(len(corpus.dev.ids), 1),
        long_words=int(corpus.counts[long].sum()) / words,
        long_sentences=float((corpus.train.lengths > config.training.max_length).mean()),
        passes=_passes(config.training, words),
    )


def _passes(limits: Training, words: int) -> float | None:
    passes: list[float | None] = [limits.max_epochs]
    if limits.max_steps is not None:
        passes.append(limits.max_steps * limits.batch_tokens / words)
    if limits.max_tokens is not None:
        passes.append(limits.max_tokens / words)
    return min((value for value in passes if value is not None), default=None)


def _counts(sentences: Sentences, types: int) -> np.ndarray:
    counts = np.zeros(types, dtype=np.int64)
    for ids in sentences.chunks():
        counts += np.bincount(ids, minlength=types)
    return counts


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
    config: PretrainConfig, corpus: Corpus, device: torch.device, sources: SourceWeights
) -> Estimate:
    """Estimate the time and memory of a run by a few training steps and one small evaluation, whose results are
    discarded. Matrix products take only about half of a step, so the time must be measured."""
    limits = config.training
    steps = min(limits.max_steps or _STEPS, _STEPS)
    trial = limits.model_copy(
        update={"log_every": 1, "eval_every": steps, "eval_tokens": _EVAL_TOKENS, "save_every": 1 << 60}
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        config = config.model_copy(update={"training": trial})
        run = train(config, corpus, Path(folder), sources=sources, device=device)
        rows = [*itertools.islice((row for row in run if row.step), steps)]
    first, last = rows[0], rows[-1]
    # The first step is left out, because it also fills caches and allocates memory.
    if last.step > 1:
        speed = (last.tokens - first.tokens) / max(60 * (last.minutes - first.minutes), 1e-9)
    else:
        speed = last.tokens_per_second
    words = None
    if last.total_steps:
        words = round(last.total_steps * last.epoch / last.step * len(corpus.train.ids))
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

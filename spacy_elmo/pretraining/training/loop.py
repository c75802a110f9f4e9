"""The training loop, and the files that it writes."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from pathlib import Path

import torch

from ...bilm.weights import Weights
from ..config import PretrainConfig
from ..corpus.prepared import Corpus
from . import checkpoint, log
from .distributed import Ranks
from .initial_weights import GivenWeights
from .log import Progress
from .trainer import Trainer

_CPU = torch.device("cpu")
_ALONE = Ranks()
_NONE = GivenWeights()
_CHECKPOINT, _LOG, _LAST = "checkpoint", "log.jsonl", "model-last.safetensors"


class PretrainingStopped(Exception):
    """Exception that is raised when a run stops on request. No training step is lost, because the run writes a
    checkpoint after its last step."""


def train(
    config: PretrainConfig,
    corpus: Corpus,
    out: Path,
    *,
    given: GivenWeights = _NONE,
    resume: bool = False,
    device: torch.device = _CPU,
    ranks: Ranks = _ALONE,
    stop: threading.Event | None = None,
) -> Iterator[Progress]:
    """Train a biLM and write checkpoints, `log.jsonl`, `model-best.safetensors` and `model-last.safetensors`
    to `out`.

    The random choices of a training step (sentences, negative samples, dropout) depend only on the seed and
    the number of the step. So a resumed run ends with the same weights as an uninterrupted run, bit for bit,
    on the same machine with the same number of threads and processes.

    The weights of `paths.init` are evaluated before the first step, so `model-best` is never worse than the
    initial weights. If a run was stopped, and is resumed with a limit that it has already reached, its
    weights are evaluated and become the final weights. After an error, the last checkpoint is intact.

    Args:
        given: the weights files that the config names.
        resume: continue from the checkpoint in `out`, if there is one.
        ranks: the processes that train together. Each process calls this function with the same folder.
        stop: event that ends the run after the current step, with `PretrainingStopped`.
    """
    out.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(config, corpus, device, ranks, given)
    state = checkpoint.load(out / _CHECKPOINT) if resume else None
    if state is not None:
        trainer.load_state(state, out / _CHECKPOINT)
    is_start, is_given = state is None, given.initial is not None
    del given, state  # each is as large as the model
    if ranks.first:
        log.truncate(out / _LOG, -1 if is_start else trainer.position.step)
    only_save = trainer.is_finished and ranks.broadcast(_last_step(out) != trainer.position.step)
    if (is_start and is_given) or only_save:
        progress = trainer.evaluate()
        ranks.on_first_rank(functools.partial(_write, trainer, out, progress, save=only_save))
        yield progress
    while not trainer.is_finished:
        row = trainer.advance()
        step, is_finished = trainer.position.step, trainer.is_finished
        is_stopped = stop is not None and ranks.sum(stop.is_set()) > 0 and not is_finished
        save = is_stopped or is_finished or step % config.training.save_every == 0
        if save or row is not None:
            ranks.on_first_rank(functools.partial(_write, trainer, out, row, save))
        if row is not None:
            yield row
        if is_stopped:
            raise PretrainingStopped(f"Stopped after step {step:,}, and saved a checkpoint of it")


def _last_step(out: Path) -> int | None:
    """Return the training step of the final weights in a folder, or None if there are no final weights."""
    return Weights.load_card(out / _LAST)["steps"] if (out / _LAST).exists() else None


def _write(trainer: Trainer, out: Path, progress: Progress | None, save: bool) -> None:
    """Write the files that are due after a training step, and the checkpoint last. If the process is killed
    before the checkpoint is complete, the resumed run repeats the step and writes all files again."""
    if progress is not None:
        if progress.best:
            _write_weights(trainer, out / "model-best.safetensors", progress)
        log.append_row(out / _LOG, progress)
    if trainer.is_finished:
        _write_weights(trainer, out / _LAST, progress)
    if save:
        checkpoint.save(trainer.state(), out / _CHECKPOINT)


def _write_weights(trainer: Trainer, path: Path, progress: Progress | None) -> None:
    trainer.weights(progress).save(path)

"""The training of a biLM: its state, the loop over training steps, and when it writes which file."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..bilm.weights import Weights
from ..digest import Digest
from .checkpoint import load_checkpoint, save_checkpoint
from .config import PretrainConfig, Training
from .corpus import Batcher, Corpus, Epoch
from .distributed import Processes
from .loss import Gradient
from .optimizers import learn_rate, optimizers, take_step
from .perplexity import Perplexity, perplexity
from .process_settings import reproducible, reuse_memory
from .source_weights import SourceWeights, initial_model
from .teacher import Teacher

_CPU = torch.device("cpu")
_ALONE = Processes()
_NONE = SourceWeights()
_LOG, _BEST, _LAST = "log.jsonl", "model-best.safetensors", "model-last.safetensors"


class PretrainingStopped(Exception):
    """Exception that is raised when a run stops on request. No training step is lost, because the run writes a
    checkpoint after its last step."""


@dataclass(frozen=True)
class Progress:
    """One row of `log.jsonl`: the progress of a run after a training step."""

    step: int
    total_steps: int
    """Estimated number of steps of the whole run; 0 if no limit of steps, epochs or words is set."""
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


@dataclass
class Position:
    """Progress of a run, as it is stored in a checkpoint."""

    step: int = 0
    """Number of training steps taken."""
    epoch: int = 0
    """Number of complete passes over the corpus."""
    batch: int = 0
    """Index of the next batch in the current pass."""
    tokens: int = 0
    """Number of training words processed."""
    seconds: float = 0.0
    """Seconds spent in training steps, including the time before the run was resumed."""
    best: float = math.inf
    """Best held-out perplexity."""
    best_step: int = 0
    """Number of steps taken when `best` was measured."""

    def is_at_end(self, settings: Training) -> bool:
        """Return True if the run has reached one of its limits (steps, epochs, tokens, minutes, patience)."""
        limits = (
            (settings.max_steps, self.step),
            (settings.max_epochs, self.epoch),
            (settings.max_tokens, self.tokens),
            (settings.max_minutes, self.seconds / 60),
            (settings.patience, self.step - self.best_step),
        )
        return any(limit is not None and value >= limit for limit, value in limits)


@dataclass
class LogInterval:
    """Measurements since the last row of the training log."""

    losses: list[float] = dataclasses.field(default_factory=list)
    """Mean loss per target of each step, in nats."""
    tokens: int = 0
    seconds: float = 0.0
    grad_norm: float = 0.0
    """Gradient norm of the last step, before clipping."""


class Trainer:
    """A network in training, with its optimizers and the position in the corpus. The class writes no files."""

    def __init__(
        self,
        config: PretrainConfig,
        corpus: Corpus,
        device: torch.device,
        processes: Processes,
        sources: SourceWeights,
    ) -> None:
        self.config, self._corpus, self._processes = config, corpus, processes
        settings = self._settings = config.training
        self.position, self._interval = Position(), LogInterval()
        self._sentences = corpus.train.cut(settings.max_length)
        self._batches = self._epoch()
        self._total_steps = total_steps(
            settings, epoch_steps=len(self._batches), epoch_tokens=len(self._sentences.ids)
        )
        with reproducible(device):
            model = initial_model(config, corpus, sources)
        self._vocabulary, self._source_cards = model.vocabulary, model.card
        self._bilm, self._head = model.bilm.to(device), model.head.to(device)
        self._batcher = Batcher(self._bilm, corpus.types, self._vocabulary)
        teacher = None
        if sources.teacher is not None:
            teacher = Teacher(sources.teacher, corpus.types, device)
        self._gradient = Gradient(
            self._bilm, self._head, self._batcher, self._sentences, settings, processes, teacher
        )
        self._optimizers = optimizers(
            self._bilm, self._head, settings, getattr(torch, self._gradient.dtype)
        )
        self._digests = _digests(corpus, self._vocabulary, teacher)

    def _epoch(self) -> Epoch:
        settings = self._settings
        return Epoch(
            self._sentences,
            batch_tokens=settings.batch_tokens,
            seed=settings.seed,
            epoch=self.position.epoch,
        )

    @property
    def is_finished(self) -> bool:
        """True if the run has reached one of its limits."""
        return self.position.is_at_end(self._settings)

    def advance(self) -> Progress | None:
        """Take one training step. Return a row of the training log, or None if no row is due. If an
        evaluation is due, the row contains the held-out perplexity."""
        started = time.monotonic()
        position, settings = self.position, self._settings
        with reproducible(self._bilm.device):
            rate = self._take_step()
            # All processes use the mean of their times, because they must reach `max_minutes` in the same step.
            seconds = self._processes.sum(time.monotonic() - started) / self._processes.size
            position.seconds += seconds
            self._interval.seconds += seconds
            evaluate = self.is_finished or position.step % settings.eval_every == 0
            if evaluate or position.step % settings.log_every == 0:
                return self._report(rate, self._held_out_perplexity() if evaluate else None)
        return None

    def evaluate(self) -> Progress:
        """Evaluate the weights without a training step, and return a row of the training log."""
        with reproducible(self._bilm.device):
            rate = learn_rate(self._settings, self.position.step, self._total_steps)
            return self._report(rate, self._held_out_perplexity())

    def _take_step(self) -> float:
        """Take one training step and return its learning rate."""
        position, interval = self.position, self._interval
        batch = self._batches[position.batch]
        loss, norm = self._gradient(batch, position.step)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self._processes.on_first(functools.partial(self._raise_divergence, loss, norm))
        rate = learn_rate(self._settings, position.step, self._total_steps)
        take_step(self._optimizers, rate)
        words = self._sentences.count_words(batch)
        interval.losses.append(loss)
        interval.grad_norm = norm
        interval.tokens += words
        position.tokens += words
        position.step += 1
        position.batch += 1
        if position.batch == len(self._batches):
            position.epoch, position.batch = position.epoch + 1, 0
            self._batches = self._epoch()
        return rate

    def _raise_divergence(self, loss: float, norm: float) -> None:
        rate = self._settings.learn_rate
        raise ValueError(
            f"The run has diverged: in step {self.position.step + 1} the loss is {loss} and the norm of its gradient"
            f" {norm}. Resume from the last checkpoint, before this step, with a lower learning rate: `--resume"
            f" --training.learn_rate {rate / 3:.2g}` (now {rate})"
        )

    def _held_out_perplexity(self) -> Perplexity:
        """Return the held-out perplexity. The first process computes it for all processes."""
        result = None
        if self._processes.first:
            sentences = self._corpus.dev.first(self._settings.eval_tokens)
            result = perplexity(self._bilm, self._head, self._batcher, sentences)
        result = self._processes.broadcast(result)
        assert result is not None
        return result

    def _report(self, rate: float, dev: Perplexity | None) -> Progress:
        position, interval = self.position, self._interval
        progress = Progress(
            step=position.step,
            total_steps=self._total_steps,
            epoch=position.epoch + position.batch / len(self._batches),
            tokens=position.tokens,
            loss=float(np.mean(interval.losses)) if interval.losses else None,
            learn_rate=rate,
            grad_norm=interval.grad_norm,
            tokens_per_second=interval.tokens / max(interval.seconds, 1e-9),
            minutes=position.seconds / 60,
            dev=dev,
            best=dev is not None and dev.mean < position.best,
        )
        self._interval = LogInterval()
        if dev is not None and progress.best:
            position.best, position.best_step = dev.mean, position.step
        return progress

    def weights(self, progress: Progress | None) -> Weights:
        """Return a copy of the weights with a model card, which has the held-out perplexity of `progress`."""
        card = {
            "language": self._corpus.lang,
            "tokenizer": self._corpus.tokenizer,
            "casing": "as in the text",
            **self._source_cards,
            **self.config.card,
            "steps": self.position.step,
            "tokens_seen": self.position.tokens,
            "training_precision": self._gradient.dtype,
        }
        if progress is not None and progress.dev is not None:
            card["perplexity"] = dataclasses.asdict(progress.dev)
        return Weights.from_bilm(self._bilm, self._head, vocabulary=self._vocabulary, card=card)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint. Random numbers depend only on the seed and the step, so none are in it."""
        return {
            "bilm": self._bilm.state_dict(),
            "head": self._head.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
            "threads": torch.get_num_threads(),
            "processes": self._processes.size,
            "precision": self._gradient.dtype,
            "log_interval": dataclasses.asdict(self._interval),
            **self._digests,
            **dataclasses.asdict(self.position),
        }

    def load_state(self, state: dict[str, Any], folder: Path) -> None:
        """Restore the state of the checkpoint in `folder`. Warn if the number of threads or processes has changed,
        because sums are then rounded differently."""
        for name, digest in self._digests.items():
            if state[name] != digest:
                raise ValueError(
                    f"The checkpoint in {folder} belongs to another {name}. Use the former {name}, or start a new"
                    " run in another folder"
                )
        for name, now, remedy in (
            ("threads", torch.get_num_threads(), "OMP_NUM_THREADS"),
            ("processes", self._processes.size, "`torchrun --nproc-per-node`"),
        ):
            if state[name] != now and self._processes.first:
                warnings.warn(
                    f"The run was saved with {state[name]} {name} and continues with {now}, so its sums are rounded"
                    f" differently from those of an uninterrupted run. Set the number with {remedy}",
                    stacklevel=3,
                )
        self._bilm.load_state_dict(state["bilm"])
        self._head.load_state_dict(state["head"])
        for optimizer, saved in zip(self._optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self._gradient.dtype = state["precision"]
        fields = dataclasses.fields(Position)
        self.position = Position(**{field.name: state[field.name] for field in fields})
        self._interval = LogInterval(**state["log_interval"])
        self._batches = self._epoch()


def train(
    config: PretrainConfig,
    corpus: Corpus,
    out: Path,
    *,
    sources: SourceWeights = _NONE,
    resume: bool = False,
    device: torch.device = _CPU,
    processes: Processes = _ALONE,
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
        resume: continue from the checkpoint in `out`, if there is one.
        processes: the processes that train together. Each process calls this function with the same folder.
        stop: event that ends the run after the current step, with `PretrainingStopped`.
    """
    reuse_memory()
    out.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(config, corpus, device, processes, sources)
    state = load_checkpoint(out) if resume else None
    if state is not None:
        trainer.load_state(state, out)
    is_start, has_initial = state is None, sources.initial is not None
    del sources, state  # each is as large as the model
    if processes.first:
        _truncate(out / _LOG, -1 if is_start else trainer.position.step)
    lacks_final = (
        trainer.is_finished and processes.broadcast(_last_step(out)) != trainer.position.step
    )
    if (is_start and has_initial) or lacks_final:
        progress = trainer.evaluate()
        processes.on_first(functools.partial(_write, trainer, out, progress, save=lacks_final))
        yield progress
    while not trainer.is_finished:
        row = trainer.advance()
        step, is_finished = trainer.position.step, trainer.is_finished
        is_stopped = stop is not None and processes.sum(stop.is_set()) > 0 and not is_finished
        save = is_stopped or is_finished or step % config.training.save_every == 0
        if save or row is not None:
            processes.on_first(functools.partial(_write, trainer, out, row, save))
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
            trainer.weights(progress).save(out / _BEST)
        # srsly would round to ten decimals and reject the infinite perplexity of a diverged run.
        with (out / _LOG).open("a", encoding="utf8") as file:
            file.write(json.dumps(dataclasses.asdict(progress)) + "\n")
    if trainer.is_finished:
        trainer.weights(progress).save(out / _LAST)
    if save:
        save_checkpoint(trainer.state(), out)


def _truncate(log: Path, step: int) -> None:
    """Remove the rows of all steps after `step`, which a resumed run writes again, and an incomplete last row."""
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


def total_steps(settings: Training, *, epoch_steps: int, epoch_tokens: int) -> int:
    """Return the number of training steps that the limits of steps, epochs and tokens allow; 0: no such limit. It is
    an estimate, because the number of batches differs a little between epochs."""
    limits = [
        settings.max_steps,
        settings.max_epochs and settings.max_epochs * epoch_steps,
        settings.max_tokens and math.ceil(settings.max_tokens / (epoch_tokens / epoch_steps)),
    ]
    return min((limit for limit in limits if limit), default=0)


def _digests(corpus: Corpus, vocabulary: Sequence[str], teacher: Teacher | None) -> dict[str, str]:
    """Return hashes of the data on which a checkpoint depends."""
    dev = corpus.dev
    return {
        "corpus": _digest(corpus.types, corpus.counts, corpus.train.offsets, dev.offsets, dev.ids),
        "vocabulary": _digest(vocabulary),
        "teacher": "" if teacher is None else teacher.digest,
    }


def _digest(words: Sequence[str], *arrays: np.ndarray) -> str:
    digest = Digest("\n".join(words).encode("utf8", "surrogatepass"))
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()

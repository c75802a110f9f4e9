"""The training loop. It yields what happens; who calls it prints."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...bilm.weights import Weights
from ..config import PretrainConfig
from ..corpus.prepared import Corpus, Epoch
from ..objective import Batcher
from ..scoring.perplexity import perplexity
from . import checkpoint, log
from .autocast import precision
from .distributed import Ranks
from .gradient import Gradient
from .initial_weights import start
from .log import Progress
from .optimization import learn_rate, optimizers, take_step
from .reproducible import reproducible

_CPU = torch.device("cpu")
_ALONE = Ranks()


class Stopped(Exception):
    """The run was asked to stop: its checkpoint is of the last step, and nothing is lost."""


def pretrain(
    config: PretrainConfig,
    corpus: Corpus,
    out: Path,
    *,
    resume: bool = False,
    device: torch.device = _CPU,
    ranks: Ranks = _ALONE,
    stop: threading.Event | None = None,
) -> Iterator[Progress]:
    """Train a biLM and write checkpoints, `log.jsonl`, `model-best.safetensors` and `model-last.safetensors` to `out`.

    Everything drawn at a step (order of sentences, negatives, dropout) follows from the seed and the number of the
    step alone, so a run that was killed and resumed ends with the weights of an unbroken one, bit for bit, on the
    same machine with the same number of threads and processes.

    Args:
        resume: go on from the checkpoint in `out`, if there is one.
        ranks: the processes that train together; each calls this function, and all see the same folder.
        stop: once it is set (by a signal, by another thread) the run ends after the step at hand.

    Raises:
        OSError: the disk is full or not writable; the checkpoint before is untouched.
        ValueError: the checkpoint belongs to another corpus or vocabulary; or a loss or gradient is not finite, which
            names the step.
        Stopped: `stop` was set, and a checkpoint is written.
    """
    out.mkdir(parents=True, exist_ok=True)
    run = _Run(config, corpus, out, device, ranks)
    saved = checkpoint.load(run.checkpoint) if resume else None
    if saved is not None:
        run.load_state(saved)
    if ranks.first:
        log.cut(run.log, run.step)
    while not run.finished:
        progress = run.advance()
        stopped = stop is not None and ranks.sum(stop.is_set()) > 0 and not run.finished
        save = stopped or run.finished or run.step % config.training.save_every == 0
        if save or progress is not None:
            ranks.on_first_rank(functools.partial(run.record, progress, save))
        if progress is not None:
            yield progress
        if stopped:
            raise Stopped(f"Stopped after step {run.step:,}, which the checkpoint holds")


class _Run:
    """A network, its optimizers and a position in the corpus."""

    def __init__(
        self, config: PretrainConfig, corpus: Corpus, out: Path, device: torch.device, ranks: Ranks
    ) -> None:
        self.config, self.corpus, self.out, self.ranks = config, corpus, out, ranks
        self.checkpoint, self.log = out / "checkpoint", out / "log.jsonl"
        settings = self.settings = config.training
        self.train = corpus.train.cut(settings.max_length)
        self.precision = precision(settings.precision, device)
        with reproducible(device):
            self.start = start(config, corpus)
        self.vocabulary = self.start.vocabulary
        self.bilm, self.head = self.start.bilm.to(device), self.start.head.to(device)
        self.batcher = Batcher(self.bilm, corpus.types, self.vocabulary)
        self.gradient = Gradient(
            self.bilm, self.head, self.batcher, self.train, settings, self.ranks
        )
        self.optimizers = optimizers(self.bilm, self.head, settings)
        # What a checkpoint hangs on: the words' numbers and the sentences' order; the words of the head's rows.
        self.digests = {
            "corpus": _digest(corpus.types, corpus.train.offsets),
            "vocabulary": _digest(self.vocabulary),
        }
        self.step = self.epoch = self.batch = self.tokens = self.best_step = 0
        self.seconds, self.best = 0.0, math.inf
        self.since = _Since()
        self._start_epoch()
        self.steps = self._total_steps()

    def _start_epoch(self) -> None:
        settings = self.settings
        self.batches = Epoch(
            self.train, batch_tokens=settings.batch_tokens, seed=settings.seed, epoch=self.epoch
        )

    def _total_steps(self) -> int:
        """As many as the limits allow; epochs differ by a few batches, so they are an estimate."""
        per_epoch = len(self.batches)
        limits = [
            self.settings.max_steps,
            self.settings.max_epochs and self.settings.max_epochs * per_epoch,
            self.settings.max_tokens
            and math.ceil(self.settings.max_tokens / (len(self.train.ids) / per_epoch)),
        ]
        return min((limit for limit in limits if limit), default=0)

    @property
    def finished(self) -> bool:
        limits = (
            (self.settings.max_steps, self.step),
            (self.settings.max_epochs, self.epoch),
            (self.settings.max_tokens, self.tokens),
            (self.settings.max_minutes, self.seconds / 60),
            (self.settings.patience, self.step - self.best_step),
        )
        return any(limit is not None and value >= limit for limit, value in limits)

    def advance(self) -> Progress | None:
        """One step, and what is due after it: a log row, a held-out perplexity."""
        started = time.monotonic()
        with reproducible(self.bilm.device):
            rate = learn_rate(self.settings, self.step, self.steps)
            self._update(rate)
            # All ranks have to agree on when `max_minutes` are over.
            seconds = self.ranks.sum(time.monotonic() - started) / self.ranks.size
            self.seconds += seconds
            self.since.seconds += seconds
            evaluate = self.finished or self.step % self.settings.eval_every == 0
            report = evaluate or self.step % self.settings.log_every == 0
            progress = self._progress(rate, evaluate) if report else None
        return progress

    def _update(self, rate: float) -> None:
        rows = self.batches[self.batch]
        value, norm = self.gradient(rows, self.step, self.precision)
        if not (math.isfinite(value) and math.isfinite(norm)):
            self.ranks.on_first_rank(functools.partial(self._diverged, value, norm))
        self.since.grad_norm = norm
        take_step(self.optimizers, rate)
        words = self.train.words(rows)
        self.since.losses.append(value)
        self.since.tokens += words
        self.tokens += words
        self.step += 1
        self.batch += 1
        if self.batch == len(self.batches):
            self.epoch, self.batch = self.epoch + 1, 0
            self._start_epoch()

    def _diverged(self, value: float, norm: float) -> None:
        rate = self.settings.learn_rate
        raise ValueError(
            f"Step {self.step + 1}: the loss is {value} and its gradient's norm {norm}. Go on from the last"
            f" checkpoint, which is before this step: --resume --training.learn_rate {rate / 3:.2g} (now {rate})"
        )

    def _progress(self, rate: float, evaluate: bool) -> Progress:
        dev = None
        if evaluate:
            if self.ranks.first:
                held_out = self.corpus.dev.first(self.settings.eval_tokens)
                dev = perplexity(self.bilm, self.head, self.batcher, held_out)
            dev = self.ranks.broadcast(dev)
        progress = Progress(
            step=self.step,
            steps=self.steps,
            epoch=self.epoch + self.batch / len(self.batches),
            tokens=self.tokens,
            loss=float(np.mean(self.since.losses)),
            learn_rate=rate,
            grad_norm=self.since.grad_norm,
            tokens_per_second=self.since.tokens / max(self.since.seconds, 1e-9),
            minutes=self.seconds / 60,
            dev=dev,
            best=dev is not None and dev.mean < self.best,
        )
        self.since = _Since()
        if dev is not None and progress.best:
            self.best, self.best_step = dev.mean, self.step
        return progress

    def record(self, progress: Progress | None, save: bool) -> None:
        """Write what is due after a step; the checkpoint last: what a kill leaves unwritten is then done again."""
        if progress is not None:
            if progress.best:
                self.write("model-best.safetensors", progress)
            log.append(self.log, progress)
        if self.finished:
            self.write("model-last.safetensors", progress)
        if save:
            checkpoint.save(self.state(), self.checkpoint)

    def write(self, name: str, progress: Progress | None) -> None:
        """Write the weights as they are, with what is known of them, to a file of the run."""
        card = {
            "language": self.corpus.lang,
            "tokenizer": self.corpus.tokenizer,
            "casing": "as in the text",
            **self.start.card,
            **self.config.card,
            "steps": self.step,
            "tokens_seen": self.tokens,
            "training_precision": self.precision,
        }
        if progress is not None and progress.dev is not None:
            card["perplexity"] = dataclasses.asdict(progress.dev)
        weights = Weights.from_bilm(self.bilm, self.head, vocabulary=self.vocabulary, card=card)
        weights.save(self.out / name)

    def state(self) -> dict[str, Any]:
        """Everything that a resumed run needs. There is no random state: draws follow from seed and step."""
        return {
            "bilm": self.bilm.state_dict(),
            "head": self.head.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "threads": torch.get_num_threads(),
            "ranks": self.ranks.size,
            "since": dataclasses.asdict(self.since),
            **self.digests,
            **{name: getattr(self, name) for name in _POSITION},
        }

    def load_state(self, state: dict[str, Any]) -> None:
        state = self._older(state) | state
        for name, digest in self.digests.items():
            if state[name] != digest:
                raise ValueError(
                    f"The checkpoint in {self.checkpoint} belongs to another {name}, whose words have other numbers."
                    f" Give the run its own {name} back, or start elsewhere"
                )
        self.bilm.load_state_dict(state["bilm"])
        self.head.load_state_dict(state["head"])
        for name, now, remedy in (
            ("threads", torch.get_num_threads(), "OMP_NUM_THREADS"),
            ("ranks", self.ranks.size, "torchrun's --nproc-per-node"),
        ):
            if state[name] != now and self.ranks.first:
                warnings.warn(
                    f"The run was saved with {state[name]} {name} and goes on with {now}: sums will round otherwise"
                    f" than in an unbroken run. {remedy} sets the number",
                    stacklevel=2,
                )
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        for name in _POSITION:
            setattr(self, name, state[name])
        self.since = _Since(**state["since"])
        self._start_epoch()

    def _older(self, state: dict[str, Any]) -> dict[str, Any]:
        """What a checkpoint of an older version does not say."""
        return {
            "ranks": 1,
            "precision": self.precision,
            "best_step": state["step"],
            "vocabulary": self.digests["vocabulary"],
        }


_POSITION = ("step", "epoch", "batch", "tokens", "seconds", "best", "best_step", "precision")


@dataclass
class _Since:
    """What happened since the last log row."""

    losses: list[float] = dataclasses.field(default_factory=list)
    tokens: int = 0
    seconds: float = 0.0
    grad_norm: float = 0.0


def _digest(words: Sequence[str], offsets: np.ndarray | None = None) -> str:
    digest = hashlib.blake2b("\n".join(words).encode("utf8", "surrogatepass"), digest_size=16)
    if offsets is not None:
        digest.update(np.ascontiguousarray(offsets).tobytes())
    return digest.hexdigest()

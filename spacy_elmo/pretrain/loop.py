"""The training loop. It yields what happens; who calls it prints."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..bilm.head import Negatives
from ..bilm.weights import Weights
from . import checkpoint
from .config import PretrainConfig
from .corpus import Corpus, Epoch
from .objective import Batcher, Perplexity, perplexity, sampled_loss
from .optimization import clip_gradients, decay_groups, learn_rate
from .reproducible import reproducible
from .start import start

_CPU = torch.device("cpu")


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
    """Mean of the sampled loss since the last row, in nats; not comparable with a held-out perplexity."""
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


def pretrain(
    config: PretrainConfig,
    corpus: Corpus,
    out: Path,
    *,
    resume: bool = False,
    device: torch.device = _CPU,
) -> Iterator[Progress]:
    """Train a biLM and write checkpoints, `log.jsonl`, `model-best.safetensors` and `model-last.safetensors` to `out`.

    Everything drawn at a step (order of sentences, negatives, dropout) follows from the seed and the number of the
    step alone, so a run that was killed and resumed ends with the weights of an unbroken one, bit for bit, on the
    same machine with the same number of threads.

    Args:
        resume: go on from the checkpoint in `out`, if there is one.
    """
    out.mkdir(parents=True, exist_ok=True)
    run = _Run(config, corpus, out, device)
    saved = checkpoint.load(run.checkpoint) if resume else None
    if saved is not None:
        run.load_state(saved)
    _cut_log(run.log, run.step)
    while not run.finished:
        progress = run.advance()
        # The checkpoint comes last: whatever a kill leaves unwritten is then done again.
        if progress is not None:
            with run.log.open("a", encoding="utf8") as file:
                file.write(json.dumps(dataclasses.asdict(progress)) + "\n")
        if run.finished:
            run.write("model-last.safetensors", progress)
        if run.finished or run.step % config.training.save_every == 0:
            checkpoint.save(run.state(), run.checkpoint)
        if progress is not None:
            yield progress


def _cut_log(log: Path, step: int) -> None:
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


class _Run:
    """A network, its optimizers and a position in the corpus."""

    def __init__(
        self, config: PretrainConfig, corpus: Corpus, out: Path, device: torch.device
    ) -> None:
        self.config, self.corpus, self.out = config, corpus, out
        self.checkpoint, self.log = out / "checkpoint", out / "log.jsonl"
        settings = self.settings = config.training
        self.train = corpus.train.cut(settings.max_length)
        self.digest = _digest(corpus)
        with reproducible(device):
            self.start = start(config, corpus)
        self.vocabulary = self.start.vocabulary
        self.bilm, self.head = self.start.bilm.to(device), self.start.head.to(device)
        self.batcher = Batcher(self.bilm, corpus.types, self.vocabulary)
        groups = decay_groups(self.bilm)
        self.optimizers = [
            torch.optim.AdamW(groups, lr=0.0, weight_decay=settings.weight_decay),
            # Moments of the head's rows move only when the rows are touched.
            torch.optim.SparseAdam(list(self.head.parameters()), lr=1e-9),
        ]
        self.step = self.epoch = self.batch = self.tokens = 0
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
        )
        return any(limit is not None and value >= limit for limit, value in limits)

    def advance(self) -> Progress | None:
        """One step, and what is due after it: a log row, a held-out perplexity."""
        started = time.monotonic()
        with reproducible(self.bilm.device):
            rate = learn_rate(self.settings, self.step, self.steps)
            self._update(rate)
            seconds = time.monotonic() - started
            self.seconds += seconds
            self.since.seconds += seconds
            evaluate = self.finished or self.step % self.settings.eval_every == 0
            report = evaluate or self.step % self.settings.log_every == 0
            progress = self._progress(rate, evaluate) if report else None
        return progress

    def _update(self, rate: float) -> None:
        settings = self.settings
        batch = self.batcher(*self.train.take(self.batches[self.batch]))
        random = np.random.default_rng([settings.seed, self.step])
        number = min(settings.negatives, len(self.vocabulary))
        negatives = [Negatives(len(self.vocabulary), number, random) for _ in range(2)]
        torch.manual_seed(int(random.integers(2**63)))
        low = settings.precision == "bfloat16"
        with torch.autocast(self.bilm.device.type, torch.bfloat16, enabled=low):
            loss = sampled_loss(self.bilm, self.head, batch, negatives, settings.dropout)
        loss.backward()
        value = float(loss.detach())
        norm = clip_gradients(
            [*self.bilm.parameters(), *self.head.parameters()], settings.grad_clip
        )
        if not (math.isfinite(value) and math.isfinite(norm)):
            raise ValueError(
                f"Step {self.step + 1}: the loss is {value} and its gradient's norm {norm}. Go on from the last"
                f" checkpoint, which is before this step: --resume --training.learn_rate {settings.learn_rate / 3:.2g}"
                f" (now {settings.learn_rate})"
            )
        self.since.grad_norm = norm
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()
        self.since.losses.append(value)
        self.since.tokens += len(batch.words)
        self.tokens += len(batch.words)
        self.step += 1
        self.batch += 1
        if self.batch == len(self.batches):
            self.epoch, self.batch = self.epoch + 1, 0
            self._start_epoch()

    def _progress(self, rate: float, evaluate: bool) -> Progress:
        dev = None
        if evaluate:
            held_out = self.corpus.dev.first(self.settings.eval_tokens)
            dev = perplexity(self.bilm, self.head, self.batcher, held_out)
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
        if progress.best:
            assert dev is not None
            self.best = dev.mean
            self.write("model-best.safetensors", progress)
        return progress

    def write(self, name: str, progress: Progress | None) -> None:
        """Write the weights as they are, with what is known of them, to a file of the run."""
        card = {
            "language": self.corpus.lang,
            "tokenizer": "text as given"
            if self.corpus.tokenized
            else f"spacy.blank({self.corpus.lang!r})",
            "casing": "as in the text",
            **self.start.card,
            **self.config.card,
            "steps": self.step,
            "tokens_seen": self.tokens,
        }
        if progress is not None and progress.dev is not None:
            card["perplexity"] = dataclasses.asdict(progress.dev)
        weights = Weights.of(self.bilm, self.head, vocabulary=self.vocabulary, card=card)
        weights.write(self.out / name)

    def state(self) -> dict[str, Any]:
        """Everything that a resumed run needs. There is no random state: draws follow from seed and step."""
        return {
            "bilm": self.bilm.state_dict(),
            "head": self.head.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "threads": torch.get_num_threads(),
            "corpus": self.digest,
            "since": dataclasses.asdict(self.since),
            **{name: getattr(self, name) for name in _POSITION},
        }

    def load_state(self, state: dict[str, Any]) -> None:
        if state["corpus"] != self.digest:
            raise ValueError(
                f"The checkpoint in {self.checkpoint} belongs to another corpus, whose words have other numbers."
                " Give the run its own corpus back, or start elsewhere"
            )
        self.bilm.load_state_dict(state["bilm"])
        self.head.load_state_dict(state["head"])
        if (threads := torch.get_num_threads()) != state["threads"]:
            warnings.warn(
                f"The run was saved with {state['threads']} threads and goes on with {threads}: sums will round"
                " otherwise than in an unbroken run. OMP_NUM_THREADS sets the number",
                stacklevel=2,
            )
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        for name in _POSITION:
            setattr(self, name, state[name])
        self.since = _Since(**state["since"])
        self._start_epoch()


_POSITION = ("step", "epoch", "batch", "tokens", "seconds", "best")


@dataclass
class _Since:
    """What happened since the last log row."""

    losses: list[float] = dataclasses.field(default_factory=list)
    tokens: int = 0
    seconds: float = 0.0
    grad_norm: float = 0.0


def _digest(corpus: Corpus) -> str:
    """What the meaning of a checkpoint hangs on: the words' numbers, and the sentences' order."""
    digest = hashlib.blake2b(
        "\n".join(corpus.types).encode("utf8", "surrogatepass"), digest_size=16
    )
    digest.update(np.ascontiguousarray(corpus.train.offsets).tobytes())
    return digest.hexdigest()

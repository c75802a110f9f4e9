"""A run from raw text to a weights file: `spacy_elmo.pretrain`, the stages of a run, and the training loop, which
writes the files of the run."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..bilm.weights import Weights
from ..run_lock import locked_folder
from .config import Paths, PretrainConfig
from .corpus.prepare import prepare
from .corpus.prepared import Corpus
from .report.report import write_report
from .run_folder import FolderReady, corpus_folder, finish, has_checkpoint, prepare_run_folder
from .training import checkpoint, distributed, log
from .training.allocation import reuse_memory
from .training.distributed import Ranks
from .training.initial_weights import read_initial_weights
from .training.log import Progress
from .training.trainer import Trainer

_CPU = torch.device("cpu")
_ALONE = Ranks()
_CHECKPOINT, _LOG = "checkpoint", "log.jsonl"


@dataclass(frozen=True)
class Preparing:
    """Stage: the tokenization of the raw text begins."""

    paths: Paths
    """The paths of the text."""


@dataclass(frozen=True)
class CorpusReady:
    """Stage: the prepared corpus is open, and training begins."""

    config: PretrainConfig
    """The settings. If `[model]` was empty, it is now the network of the initial weights."""
    corpus: Corpus
    initial: Weights | None
    """The weights of `paths.init`; None: random weights."""


@dataclass(frozen=True)
class Finished:
    """Stage: a limit has ended the run, and its weights are written."""

    last: Progress | None
    """The last row of the log; None if the run was already complete."""


Stage = FolderReady | Preparing | CorpusReady | Finished
"""A stage of a run. `pretrain` passes it to `notify` when the run reaches it."""


class PretrainingStopped(Exception):
    """Signal that a run was stopped on request. The checkpoint contains its last step, so nothing is lost."""


def _tell_nobody(stage: Stage) -> None:
    pass


def pretrain(
    config: str | Path | Mapping[str, Any] | PretrainConfig,
    out: str | Path,
    *,
    overrides: Mapping[str, Any] | None = None,
    resume: bool = False,
    force: bool = False,
    init: str | Path | None = None,
    gpu_id: int = -1,
    stop: threading.Event | None = None,
    notify: Callable[[Stage], None] = _tell_nobody,
) -> Generator[Progress, None, None]:
    """Train a biLM on raw text, and yield the rows of its log as they are written.

    This is a generator: it does what `python -m spacy elmo pretrain` does, and starts when you ask for the first row.
    It writes `model-best.safetensors`, `model-last.safetensors`, `report.html`, `log.jsonl`, `config.cfg` and a
    checkpoint to `out`. If the run is interrupted, stopped or killed, `resume` continues it; the weights in the end are
    those of an uninterrupted run. From now on, the process keeps freed memory for the next step, which saves a quarter
    of the time.

    With `torchrun`, each process calls this function with the same arguments. The processes train one model. Only the
    first process writes, notifies and yields.

    Args:
        config: a config file, its sections as a dict, or checked settings.
        out: folder of the run.
        overrides: values that replace settings, such as {"paths.raw_text": "texts/*.txt"}.
        resume: continue the run in `out`; if there is no run, start one.
        force: replace the run in `out`. The old run is kept in `out/replaced` until the new one is complete.
        init: initial weights instead of `paths.init`: a file, or the name of a bundled or installed biLM.
        gpu_id: number of the GPU; -1: the CPU.
        stop: when another thread or a signal handler sets it, the run ends after the current step. If the event is also
            a context manager, it is entered while the run trains.
        notify: function that is called with each stage of the run: a `FolderReady`, a `Preparing` unless the corpus
            exists, a `CorpusReady`, and in the end a `Finished`.

    Raises:
        BlockingIOError: another run is writing to `out`.
        FileExistsError: `out` contains a run, and neither `resume` nor `force` is set.
        OSError: a text, corpus or weights file does not exist or cannot be read; `out` cannot be written.
        PretrainingStopped: `stop` was set, and a checkpoint has been written.
        ValueError: the settings are impossible, or differ from the settings of the run to resume; the text, corpus or
            weights do not match them; or the loss is not finite.
    """
    if resume and force:
        raise ValueError(
            "resume (`--resume`) continues the run in the folder, but force (`--force`) replaces it: choose one of them"
        )
    if init is not None:
        overrides = {**(overrides or {}), "paths.init": str(init)}
    settings, out = PretrainConfig.read(config, overrides), Path(out)
    device = distributed.device(gpu_id)
    with distributed.join(device) as processes, contextlib.ExitStack() as stack:
        processes.on_first_rank(lambda: stack.enter_context(locked_folder(out)))
        reuse_memory()
        resumed = out if resume and has_checkpoint(out) else None
        settings, initial = read_initial_weights(settings, resumed)
        folder = corpus_folder(settings, out)
        corpus: Corpus | None = None

        def prepare_once() -> None:
            """Prepare the folder and the corpus of the run. Only one process does this."""
            nonlocal corpus
            if settings.paths.corpus is not None:
                # Opened before `force` moves the run in `out`, so that the run stays if the corpus cannot be opened.
                corpus = Corpus.open(folder)
            notify(prepare_run_folder(out, settings, resume=resume, force=force))
            if not folder.exists():
                notify(Preparing(settings.paths))
                prepare(settings.paths, settings.prepare, folder, settings.bilm.spelling)

        processes.on_first_rank(prepare_once)
        corpus = corpus or Corpus.open(folder)
        if processes.first:
            notify(CorpusReady(settings, corpus, initial))
        if isinstance(stop, AbstractContextManager):
            stack.enter_context(stop)
        rows = train(
            settings, corpus, out, initial=initial, resume=resume, device=device, ranks=processes, stop=stop
        )  # fmt: skip
        del initial  # as large as the model
        row = None
        for row in rows:
            if processes.first:
                if row.dev is not None:
                    write_report(out)
                yield row
        if processes.first:
            if row is None:
                # A kill may have prevented the report after the last row of the log.
                write_report(out)
            finish(out)
            notify(Finished(row))


def train(
    config: PretrainConfig,
    corpus: Corpus,
    out: Path,
    *,
    initial: Weights | None = None,
    resume: bool = False,
    device: torch.device = _CPU,
    ranks: Ranks = _ALONE,
    stop: threading.Event | None = None,
) -> Iterator[Progress]:
    """Train a biLM and write checkpoints, `log.jsonl`, `model-best.safetensors` and `model-last.safetensors` to `out`.

    The random choices of a step (order of sentences, negatives, dropout) depend only on the seed and the number of the
    step. So a run that was killed and resumed ends with the same weights as an uninterrupted run, bit for bit, on the
    same machine with the same number of threads and processes.

    Initial weights are evaluated first, so `model-best` is never worse than the initial weights.

    Args:
        initial: the weights of `paths.init`; None: random weights.
        resume: continue from the checkpoint in `out`, if there is one.
        ranks: the processes that train together. Each calls this function with the same folder.
        stop: when a signal handler or another thread sets it, the run ends after the current step.

    Raises:
        OSError: the disk is full or not writable. The last checkpoint is unchanged.
        ValueError: see `Trainer`; the checkpoint belongs to another corpus or vocabulary; or a loss or gradient is not
            finite (the message names the step).
        PretrainingStopped: `stop` was set, and a checkpoint has been written.
    """
    out.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(config, corpus, device, ranks, initial)
    state = checkpoint.load(out / _CHECKPOINT) if resume else None
    if state is not None:
        trainer.load_state(state, out / _CHECKPOINT)
    is_start, is_given = state is None, initial is not None
    del initial, state  # each is as large as the model
    if ranks.first:
        log.truncate(out / _LOG, -1 if is_start else trainer.position.step)
    if is_start and is_given:
        progress = trainer.evaluate_start()
        ranks.on_first_rank(functools.partial(_write, trainer, out, progress, save=False))
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


def _write(trainer: Trainer, out: Path, progress: Progress | None, save: bool) -> None:
    """Write the files that are due after a step. The checkpoint is written last: if the process is killed before, the
    resumed run repeats the step and writes all files."""
    if progress is not None:
        if progress.best:
            _write_weights(trainer, out / "model-best.safetensors", progress)
        log.append_row(out / _LOG, progress)
    if trainer.is_finished:
        _write_weights(trainer, out / "model-last.safetensors", progress)
    if save:
        checkpoint.save(trainer.state(), out / _CHECKPOINT)


def _write_weights(trainer: Trainer, path: Path, progress: Progress | None) -> None:
    trainer.weights(progress).save(path)

"""A run from raw text to a weights file: `spacy_elmo.pretrain`, and the stages that it reaches."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..bilm.weights import Weights
from ..run_lock import locked_folder
from .config import Paths, PretrainConfig
from .corpus.prepare import prepare
from .corpus.prepared import Corpus
from .report.report import write_report
from .run_folder import FolderReady, corpus_folder, finish, has_checkpoint, prepare_run_folder
from .training import distributed
from .training.allocation import reuse_memory
from .training.initial_weights import read_initial_weights
from .training.log import Progress
from .training.loop import train


@dataclass(frozen=True)
class Preparing:
    """The raw text is about to be tokenized."""

    paths: Paths
    """The paths of the text."""


@dataclass(frozen=True)
class CorpusReady:
    """The prepared corpus is there, and training begins."""

    config: PretrainConfig
    """The settings, in which an empty `[model]` is replaced by the network of the initial weights."""
    corpus: Corpus
    initial: Weights | None
    """The weights of `paths.init`; None: random ones."""


@dataclass(frozen=True)
class Finished:
    """A limit has ended the run, and its weights are written."""

    last: Progress | None
    """The last row of the log; None: the run was complete before."""


Stage = FolderReady | Preparing | CorpusReady | Finished
"""A stage of a run, given to `notify` of `pretrain` when the run reaches it."""


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

    It does what `python -m spacy elmo pretrain` does, and nothing before the first row is asked for. `out` receives
    `model-best.safetensors` and `model-last.safetensors`, `report.html`, `log.jsonl`, `config.cfg` and a checkpoint.
    A run that is left early, stopped or killed continues with `resume`, and ends with the weights of an unbroken run.
    The process keeps freed memory from then on, for the next step, which saves a quarter of its time.

    In the processes that `torchrun` has started, each calls this function with the same arguments. They train one
    model; the first one writes, notifies and yields, and the others yield nothing.

    Args:
        config: a config file, its sections as a dict, or checked settings.
        out: folder of the run.
        overrides: other values of settings, such as {"paths.raw_text": "texts/*.txt"}.
        resume: continue the run in `out`; if there is none, start one.
        force: replace the run in `out`, which is kept in its folder `replaced` until this one is complete.
        init: initial weights, a file or the name of a bundled or installed biLM, instead of `paths.init`.
        gpu_id: number of the GPU; -1: the CPU.
        stop: when it is set (by another thread or a signal) the run ends after the current step. An event that is a
            context manager as well is entered while the run trains.
        notify: called with each stage that the run reaches: a `FolderReady`, a `Preparing` unless the corpus exists, a
            `CorpusReady`, and in the end a `Finished`.

    Raises:
        BlockingIOError: another run is writing to `out`.
        FileExistsError: `out` contains a run, and neither `resume` nor `force` is set.
        OSError: a text, corpus or weights file does not exist or cannot be read; `out` cannot be written.
        PretrainingStopped: `stop` was set, and a checkpoint has been written.
        ValueError: the settings are impossible, or other ones than those of the run to resume; the text, corpus or
            weights do not fit them; or the loss is not finite.
    """
    if resume and force:
        raise ValueError(
            "resume (`--resume`) continues the run in the folder and force (`--force`) replaces it; choose one of them"
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
            """Prepare the folder and the corpus of the run, in one process for all."""
            nonlocal corpus
            if settings.paths.corpus is not None:
                # Before `force` moves the run in `out` aside, so that it stays if the corpus cannot be opened.
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
                # The run may have been killed between the last row of the log and its report.
                write_report(out)
            finish(out)
            notify(Finished(row))

"""The function `spacy_elmo.pretrain`, which trains a biLM on raw text, and classes for the stages of a
run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files import locked_folder
from .config import Paths, PretrainConfig
from .corpus.prepare import prepare
from .corpus.prepared import Corpus
from .report import write_report
from .run_folder import corpus_folder, prepare_run_folder
from .training import checkpoint, distributed
from .training.initial_weights import GivenWeights, read_given_weights
from .training.runtime import reuse_memory
from .training.trainer import Progress, train


@dataclass(frozen=True)
class FolderReady:
    """Stage of a run: the folder of the run is locked and checked."""

    has_checkpoint: bool
    """True if the run continues from a checkpoint in the folder."""


@dataclass(frozen=True)
class Preparing:
    """Stage of a run: the tokenization of the raw text begins."""

    paths: Paths
    """The settings `[paths]`, which contain the paths of the raw text."""


@dataclass(frozen=True)
class CorpusReady:
    """Stage of a run: the tokenized corpus is open, and training begins."""

    config: PretrainConfig
    """The settings. If the section `[model]` was empty, it now describes the network of the initial
    weights."""
    corpus: Corpus
    given: GivenWeights
    """The weights files that the config names."""


@dataclass(frozen=True)
class Finished:
    """Stage of a run: the run has reached a limit, and its weights are written."""

    last: Progress | None
    """The last row of the training log; None if the run was already complete before this call."""


Stage = FolderReady | Preparing | CorpusReady | Finished
"""A stage of a run. `pretrain` calls `notify` with each stage that the run reaches."""


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
    """Train a biLM on raw text, and yield each row of the training log when the row is written.

    This generator does the same as `python -m spacy elmo pretrain`, and starts when you ask for the first
    row. It writes `model-best.safetensors`, `model-last.safetensors`, `report.html`, `log.jsonl`,
    `config.cfg` and a checkpoint to `out`. If the run is interrupted, stopped or killed, a call with `resume`
    continues the run. The final weights are then the same as after an uninterrupted run. The process keeps
    freed memory for the next training step, because this saves a quarter of the time.

    With `torchrun`, each process calls this function with the same arguments. The processes train one model.
    Only the first process writes, notifies and yields.

    Args:
        config: a config file, a dict with the sections of a config, or a `PretrainConfig`.
        out: folder of the run.
        overrides: values that replace settings, such as {"paths.raw_text": "texts/*.txt"}.
        resume: continue the run in `out`; if `out` contains no run, start one.
        force: delete the run in `out`, and start a new one.
        init: initial weights instead of `paths.init`: a file, or the name of a bundled or installed biLM.
        gpu_id: number of the GPU; -1: the CPU.
        stop: if another thread or a signal handler sets this event, the run ends after the current step. If
            the event is also a context manager, the training runs inside `with stop:`.
        notify: function that is called with each stage of the run, in this order: `FolderReady`; `Preparing`,
            if the corpus does not exist yet; `CorpusReady`; `Finished`.

    Raises:
        BlockingIOError: another run is writing to `out`.
        FileExistsError: `out` contains a run, but `resume` and `force` are both false.
        OSError: a text, corpus or weights file cannot be read (for example, it does not exist), or `out`
            cannot be written.
        PretrainingStopped: `stop` was set. The run has written a checkpoint.
        ValueError: the settings are invalid; the run to resume has other settings; the text, the corpus or
            the weights do not match the settings; or the loss is not finite.
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
        has_checkpoint = resume and checkpoint.exists(out)
        settings, given = read_given_weights(settings)
        corpus = None
        folder = corpus_folder(settings, out)

        def prepare_once() -> None:
            """Prepare the folder and the corpus of the run. Only the first process calls this function."""
            nonlocal corpus
            if settings.paths.corpus is not None:
                # Opened before `force` deletes the run in `out`, so that the run stays if the corpus cannot be opened.
                corpus = Corpus.open(folder)
            prepare_run_folder(out, settings, resume=resume, force=force)
            notify(FolderReady(has_checkpoint))
            if not folder.exists():
                notify(Preparing(settings.paths))
                corpus = prepare(settings.paths, settings.prepare, folder, settings.bilm.spelling)

        processes.on_first_rank(prepare_once)
        corpus = corpus or Corpus.open(folder)
        if processes.first:
            notify(CorpusReady(settings, corpus, given))
        if isinstance(stop, AbstractContextManager):
            stack.enter_context(stop)
        rows = train(
            settings, corpus, out, given=given, resume=resume, device=device, ranks=processes, stop=stop
        )  # fmt: skip
        del given  # as large as the models
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
            notify(Finished(row))

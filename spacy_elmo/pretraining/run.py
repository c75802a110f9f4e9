"""The function `spacy_elmo.pretrain`, which trains a biLM on raw text, the stages of a run, and its output folder."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from confection import Config

from ..files import atomic_file, locked_folder, remove_folder, remove_partial
from . import distributed
from .checkpoint import CHECKPOINT
from .config import Paths, PretrainConfig
from .corpus import DESCRIPTION, Corpus
from .prepare import prepare
from .report import write_report
from .source_weights import SourceWeights, read_source_weights
from .trainer import Progress, train

# config.cfg is not in this list, because a run that failed when it read its text leaves only this file.
_FILES = ("log.jsonl", "model-best.safetensors", "model-last.safetensors", "report.html")
_FOLDERS = ("checkpoint", "corpus")
_CONFIG = "config.cfg"
# Settings that may differ when a run is resumed: its limits, the frequency of its reports, and the number of processes
# of `prepare`, which changes no result. Also the learning rate: a diverged run is resumed with a lower one. And the
# path of the teacher, because the checkpoint contains a hash of the teacher.
_CHANGEABLE = (
    "max_steps", "max_epochs", "max_tokens", "max_minutes",
    "patience", "log_every", "eval_every", "save_every", "learn_rate", "n_process", "teacher",
)  # fmt: skip


class FolderReady(NamedTuple):
    """Stage of a run: its folder is locked and checked, and contains a checkpoint to resume from, or not."""

    has_checkpoint: bool


class Preparing(NamedTuple):
    """Stage of a run: the tokenization of the raw text begins."""

    paths: Paths


class CorpusReady(NamedTuple):
    """Stage of a run: the tokenized corpus is open, and training begins. `config.model` is no longer empty."""

    config: PretrainConfig
    corpus: Corpus
    sources: SourceWeights


class Finished(NamedTuple):
    """Stage of a run: a limit is reached, and the weights are written. `last` is the last row of the log; None: the run
    was already complete."""

    last: Progress | None


Stage = FolderReady | Preparing | CorpusReady | Finished
"""A stage of a run. `pretrain` calls `notify` with each stage that the run reaches."""


def pretrain(
    config: str | Path | Mapping[str, Any] | PretrainConfig,
    out: str | Path,
    *,
    overrides: Mapping[str, Any] | None = None,
    resume: bool = False,
    force: bool = False,
    gpu_id: int = -1,
    stop: threading.Event | None = None,
    notify: Callable[[Stage], object] = lambda stage: None,
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
        gpu_id: number of the GPU; -1: the CPU.
        stop: if another thread or a signal handler sets this event, the run ends after the current step. If
            the event is also a context manager, the training runs inside `with stop:`.
        notify: function that is called with each stage of the run, in this order: `FolderReady`; `Preparing`,
            if the corpus does not exist yet; `CorpusReady`; `Finished`.

    Raises:
        BlockingIOError: another run is writing to `out`.
        FileExistsError: `out` contains a run, but `resume` and `force` are both false.
        PretrainingStopped: `stop` was set. The run has written a checkpoint.
    """
    if resume and force:
        raise ValueError(
            "resume (`--resume`) continues the run in the folder, but force (`--force`) replaces it: choose one of them"
        )
    settings, out = PretrainConfig.read(config, overrides), Path(out)
    device = distributed.device(gpu_id)
    with distributed.join(device) as processes, contextlib.ExitStack() as stack:
        processes.on_first(lambda: stack.enter_context(locked_folder(out)))
        has_checkpoint = resume and (out / CHECKPOINT).exists()
        settings, sources = read_source_weights(settings)
        folder = corpus_folder(settings, out)

        def prepared() -> Corpus:
            # Opened before `force` deletes the run in `out`, so that the run stays if the corpus cannot be opened.
            given = Corpus.open(folder) if settings.paths.corpus is not None else None
            prepare_run_folder(out, settings, resume=resume, force=force)
            notify(FolderReady(has_checkpoint))
            if given is not None or folder.exists():
                return given or Corpus.open(folder)
            notify(Preparing(settings.paths))
            return prepare(settings.paths, settings.prepare, folder, settings.bilm.spelling)

        corpus = processes.on_first(prepared) or Corpus.open(folder)
        if processes.first:
            notify(CorpusReady(settings, corpus, sources))
        if isinstance(stop, AbstractContextManager):
            stack.enter_context(stop)
        rows = train(
            settings, corpus, out, sources=sources, resume=resume, device=device, processes=processes, stop=stop
        )  # fmt: skip
        del sources  # as large as the models
        progress = None
        for progress in rows:
            if processes.first:
                if progress.dev is not None:
                    write_report(out)
                yield progress
        if processes.first:
            if progress is None:
                # A kill may have prevented the report after the last row of the log.
                write_report(out)
            notify(Finished(progress))


def prepare_run_folder(
    out: Path, config: PretrainConfig, *, resume: bool = False, force: bool = False
) -> None:
    """Make `out` the folder of a new run, of the run to resume, or of the run that replaces the old one (`force`), and
    write `config.cfg`. No file is deleted before all checks have passed."""
    present = [name for name in (*_FILES, *_FOLDERS) if (out / name).exists()]
    _check_own(out, present)
    if present and not (resume or force):
        raise FileExistsError(
            f"{out} already contains a run ({', '.join(present)}). To continue it, set resume (`--resume`); to replace"
            " it, set force (`--force`)"
        )
    if present and resume and (out / _CONFIG).exists():
        _check_same(out / _CONFIG, config)
    if config.paths.corpus is None and not (resume and (out / "corpus").exists()):
        config.paths.text_files()
    old = [out / name for name in present] if force else []
    for name in ("corpus", "init", "teacher"):
        source = getattr(config.paths, name)
        if source is not None and any(
            Path(source).resolve().is_relative_to(path.resolve()) for path in old
        ):
            raise ValueError(
                f"paths.{name} = {source} belongs to the run in {out}, which force (`--force`) would delete. Copy"
                f" {source} to another folder, or choose another folder for the run"
            )
    out.mkdir(parents=True, exist_ok=True)
    for name in (*_FILES, *_FOLDERS, _CONFIG):
        remove_partial(out, name)
    for path in old:
        if path.is_dir():
            remove_folder(path)
        else:
            path.unlink()
    with atomic_file(out / _CONFIG) as partial:
        Config(config.model_dump()).to_disk(partial)


def corpus_folder(config: PretrainConfig, out: Path) -> Path:
    """Return the folder for the prepared corpus of a run, even if the folder does not exist yet."""
    return out / "corpus" if config.paths.corpus is None else Path(config.paths.corpus)


def _check_own(out: Path, present: list[str]) -> None:
    """Check that what a run would replace in `out` was written by a run: its subfolders, and `config.cfg` if no other
    file of a run is present."""
    for folder, is_own in (
        ("corpus", lambda found: DESCRIPTION in found),
        ("checkpoint", lambda found: all(name.endswith(".pt") for name in found)),
    ):
        path = out / folder
        found = {file.name for file in path.glob("[!.]*")}
        if found and not is_own(found):
            raise FileExistsError(
                f"{path} contains files that are not from a run ({', '.join(sorted(found)):.100}), and the run would"
                " replace them. Choose another output folder"
            )
    if not present and (path := out / _CONFIG).exists():
        try:
            PretrainConfig.read(path)
        except (OSError, ValueError) as error:
            raise FileExistsError(
                f"{path} is not from a run of this version, and the run would replace it. Delete it, or choose another"
                f" output folder ({error})"
            ) from error


def _check_same(path: Path, config: PretrainConfig) -> None:
    try:
        before = _flat(PretrainConfig.read(path))
    except ValueError as error:
        raise ValueError(f"Cannot read {path}, the config of the run to resume: {error}") from error
    now = _flat(config)
    changed = [
        f"{name} = {now.get(name)!r}, was {before.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name) and name.rpartition(".")[2] not in _CHANGEABLE
    ]
    if changed:
        raise ValueError(
            f"{path.parent} contains a run with other settings. Restore them, or choose another folder:\n  "
            + "\n  ".join(changed)
        )


def _flat(config: PretrainConfig) -> dict[str, object]:
    # JSON turns tuples into lists, because the config that is read from a file has lists.
    sections = json.loads(json.dumps(config.model_dump()))
    return {
        f"{section}.{key}": value
        for section, keys in sections.items()
        for key, value in keys.items()
    }

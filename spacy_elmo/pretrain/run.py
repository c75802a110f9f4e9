"""The output folder of a run: whose it is, and what a new run may do to it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from confection import Config

from ..text.files import text_files
from .config import PretrainConfig
from .corpus.prepare import prepare
from .corpus.prepared import Corpus
from .training.initial_weights import given_weights

# A config.cfg alone is no run: it is what a start leaves that failed over its text.
_FILES = ("log.jsonl", "model-best.safetensors", "model-last.safetensors", "report.html")
_FOLDERS = ("checkpoint", "corpus")
# What may change between a run and its resumption: where it ends and how often it reports.
# The learning rate too, since lowering it is the remedy of a run that has diverged.
# The processes of prepare change nothing that is written.
_CHANGEABLE = (
    "max_steps", "max_epochs", "max_tokens", "max_minutes",
    "patience", "log_every", "eval_every", "save_every", "learn_rate", "n_process",
)  # fmt: skip


def claim(out: Path, config: PretrainConfig, *, resume: bool = False, force: bool = False) -> bool:
    """Make `out` the folder of this run and write its `config.cfg`.

    Args:
        resume: go on with the run that is there, if any.
        force: delete the run that is there (its own files, nothing else in the folder).

    Returns:
        Whether there is a run to go on with.

    Raises:
        FileExistsError: there is a run, and neither was said.
        FileNotFoundError: there is no text, corpus or weights file where the config says.
        ValueError: the run to resume has other settings; names each. Or `paths.init` does not fit `[model]`.
            Nothing is deleted before all is well.
    """
    present = [name for name in (*_FILES, *_FOLDERS) if (out / name).exists()]
    if present and not (resume or force):
        raise FileExistsError(
            f"{out} holds a run already ({', '.join(present)}). --resume goes on with it, --force deletes it"
        )
    if present and resume and (out / "config.cfg").exists():
        _check_same(out / "config.cfg", config)
    doomed = [out / name for name in present] if force else []
    _check_sources(out, config, doomed, kept=resume)
    for path in doomed:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    out.mkdir(parents=True, exist_ok=True)
    for litter in out.glob(".*.partial"):  # of a run that was killed while it wrote
        shutil.rmtree(litter) if litter.is_dir() else litter.unlink()
    partial = out / ".config.cfg.partial"
    Config(config.model_dump()).to_disk(partial)
    partial.replace(out / "config.cfg")
    return resume and (out / "checkpoint").exists()


def _check_sources(out: Path, config: PretrainConfig, doomed: list[Path], *, kept: bool) -> None:
    """Find what the run starts from before anything is deleted for its sake."""
    paths = config.paths
    for name, source in (("corpus", paths.corpus), ("init", paths.init)):
        if source is not None and any(
            Path(source).resolve().is_relative_to(p.resolve()) for p in doomed
        ):
            raise ValueError(
                f"paths.{name} = {source} is of the run in {out}, which --force would delete"
            )
    given_weights(config)
    if paths.corpus is not None:
        Corpus.open(paths.corpus)
    elif not (kept and (out / "corpus").exists()):
        if paths.raw_text is None:
            raise ValueError("paths.raw_text is needed: a file, a directory or a glob pattern")
        for text in (paths.raw_text, paths.dev_text):
            if text is not None:
                text_files(text)


def _check_same(path: Path, config: PretrainConfig) -> None:
    try:
        before = _flat(PretrainConfig.of(Config().from_disk(path)).model_dump())
    except ValueError as error:
        raise ValueError(
            f"{path}, the config of the run to resume, cannot be read: {error}"
        ) from error
    now = _flat(config.model_dump())
    changed = [
        f"{name} = {now.get(name)!r}, was {before.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name) and name.rpartition(".")[2] not in _CHANGEABLE
    ]
    if changed:
        raise ValueError(
            f"{path.parent} holds a run with other settings; set them back, or start elsewhere:\n  "
            + "\n  ".join(changed)
        )


def _flat(sections: dict[str, dict[str, object]]) -> dict[str, object]:
    # Through JSON, so that a tuple and the list that a file brings back compare equal.
    sections = json.loads(json.dumps(sections))
    return {
        f"{section}.{key}": value
        for section, keys in sections.items()
        for key, value in keys.items()
    }


def run_corpus(config: PretrainConfig, out: Path) -> Corpus:
    """The prepared corpus of a run: `paths.corpus`, or OUT/corpus, which is made if it is not there.

    Raises:
        OSError, ValueError: as of `prepare` and `Corpus.open`.
    """
    if config.paths.corpus is not None:
        return Corpus.open(config.paths.corpus)
    if (out / "corpus").exists():
        return Corpus.open(out / "corpus")
    return prepare(config.paths, config.prepare, out / "corpus")

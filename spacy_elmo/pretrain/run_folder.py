"""The output folder of a run: whose it is, and what a new run may do to it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from confection import Config

from .config import PretrainConfig
from .corpus import Corpus
from .prepare import prepare

# A config.cfg alone is no run: it is what a start leaves that failed over its text.
_FILES = ("log.jsonl", "model-best.safetensors", "model-last.safetensors")
_FOLDERS = ("checkpoint", "corpus")
# What may change between a run and its resumption: where it ends and how often it reports.
_CHANGEABLE = (
    "max_steps", "max_epochs", "max_tokens", "max_minutes",
    "log_every", "eval_every", "eval_tokens", "save_every",
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
        ValueError: the run to resume has other settings; names each.
    """
    present = [name for name in (*_FILES, *_FOLDERS) if (out / name).exists()]
    if present and force:
        for name in present:
            shutil.rmtree(out / name) if name in _FOLDERS else (out / name).unlink()
        present = []
    if present and not resume:
        raise FileExistsError(
            f"{out} holds a run already ({', '.join(present)}). --resume goes on with it, --force deletes it"
        )
    if present and (out / "config.cfg").exists():
        _check_same(out / "config.cfg", config)
    out.mkdir(parents=True, exist_ok=True)
    Config(config.model_dump()).to_disk(out / "config.cfg")
    return bool(present)


def _check_same(path: Path, config: PretrainConfig) -> None:
    before = _flat(PretrainConfig.of(Config().from_disk(path)).model_dump())
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

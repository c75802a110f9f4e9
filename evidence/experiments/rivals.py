"""The files that the rivals of ELMo need. They are made from raw text."""

from __future__ import annotations

import glob
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from spacy_elmo.run_lock import lock

from . import pretrained_tok2vec, raw_text
from .plan import Plan, Run
from .spelling import spelling_of
from .variants import Resources

_FLORET = Path(__file__).parents[2] / "projects" / "compare" / "floret_vectors.py"


class Resource(NamedTuple):
    """A file or folder that some runs of a size need."""

    path: Path
    size: str
    lang: str
    task: str | None
    """The task whose embedding and encoder are pretrained; None: static vectors, which all tasks use."""


def resources(size: str, task: str) -> Resources:
    """Return the files that the variants of a task need."""
    folder = Path("rivals", size)
    digest = pretrained_tok2vec.tok2vec_digest(task)
    return Resources(folder / "vectors", folder / f"tok2vec-{digest}.bin")


def needs_raw_text(run: Run) -> bool:
    """Return True if a run needs a file that is made from raw text."""
    return run.variant in ("vectors", "elmo_vectors", "pretrain")


def needed(runs: Iterable[Run]) -> list[Resource]:
    """Return the files that runs need, each once. Tasks with the same embedding and encoder share their weights."""
    by_path: dict[Path, Resource] = {}
    for run in filter(needs_raw_text, runs):
        files, task = resources(run.size, run.data.task), run.data.task
        static = "vectors" in run.variant
        path = files.vectors if static else files.tok2vec
        by_path.setdefault(path, Resource(path, run.size, run.lang, None if static else task))
    return list(by_path.values())


def missing(runs: Iterable[Run]) -> list[Resource]:
    """Return the files of `needed` that do not exist yet."""
    return [resource for resource in needed(runs) if not resource.path.exists()]


def planned_minutes(plan: Plan, wanted: list[Resource]) -> float:
    """Return the planned minutes of one core for the files of one size, including their text."""
    if not wanted:
        return 0.0
    minutes = plan.size(wanted[0].size)["raw_minutes"]
    each = (minutes["floret" if resource.task is None else "tok2vec"] for resource in wanted)
    return float(minutes["text"] + sum(each))


def absent_text(plan: Plan, size: str, data_folder: Path) -> Path | None:
    """Return the pattern of the raw text if it is missing; None if a file matches it, or if the texts exist already."""
    pattern = _raw_text(plan, size, data_folder)
    there = glob.glob(str(pattern)) or all(path.exists() for path in _texts(size))
    return None if there else pattern


def make_texts(plan: Plan, size: str, data_folder: Path) -> None:
    """Write the input texts of floret and `spacy pretrain`, if they do not exist.

    Raises:
        OSError, ValueError: the raw text does not exist or cannot be read.
    """
    if all(path.exists() for path in _texts(size)):
        return
    section = plan.size(size)
    raw_text.write(
        str(_raw_text(plan, size, data_folder)),
        Path("rivals", size),
        words=section["raw_words"],
        jsonl_words=section["tok2vec_words"],
        lang=plan.lang(size),
        spelling=spelling_of(section.get("weights")),
    )


def make(resource: Resource) -> str:
    """Make a file from the texts of its size, and return a line about it.

    Raises:
        BlockingIOError: a process of a killed command is still making it.
        OSError: the text does not exist.
        subprocess.CalledProcessError: floret has failed and printed the reason.
    """
    path, _, lang, task = resource
    text, lines = _texts(resource.size)
    with lock(path):
        if task is None:
            command = [sys.executable, str(_FLORET), str(text), str(path), "--lang", lang]
            subprocess.run(command, check=True)
        else:
            pretrained_tok2vec.train(task, lines, path, lang)
    return str(path)


def _raw_text(plan: Plan, size: str, data_folder: Path) -> Path:
    return data_folder / f"pretrain-{plan.lang(size)}" / "train-*"


def _texts(size: str) -> tuple[Path, Path]:
    return Path("rivals", size, "raw.txt"), Path("rivals", size, "raw.jsonl")

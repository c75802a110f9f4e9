"""The files that the rivals of ELMo need, and the jobs that make them from raw text."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterable
from pathlib import Path

from .plan import Plan, Run
from .pretrained_tok2vec import tok2vec_digest
from .schedule import Job
from .variants import Resources


def resources(size: str, task: str) -> Resources:
    """Return the files that the variants of a task need."""
    folder = Path("rivals", size)
    return Resources(folder / "vectors", folder / f"tok2vec-{tok2vec_digest(task)}.bin")


def absent_text(plan: Plan, size: str, data_folder: Path) -> Path | None:
    """Return the pattern of the raw text if no file matches it and nothing was made from the text before, else None."""
    pattern = _raw_text(plan, size, data_folder)
    there = glob.glob(str(pattern)) or all(path.exists() for path in _texts(size))
    return None if there else pattern


def text_jobs(plan: Plan, size: str, data_folder: Path) -> list[Job]:
    """Return the job that reads the raw text, if any run of the size needs it."""
    if not _users(plan, size):
        return []
    folder, section = Path("rivals", size), plan.size(size)
    command = ["raw_text", str(_raw_text(plan, size, data_folder)), str(folder)]
    options = {
        "--words": "raw_words",
        "--jsonl-words": "tok2vec_words",
        "--lang": "lang",
        "--weights": "weights",
    }
    for option, key in options.items():
        if section.get(key) is not None:
            command += [option, str(section[key])]
    return [_job("raw text", command, _texts(size), section["raw_minutes"]["text"])]


def resource_jobs(plan: Plan, size: str) -> list[Job]:
    """Return the jobs that make static vectors, and weights for each kind of embedding, as the runs of a size need
    them."""
    folder, minutes = Path("rivals", size), plan.size(size)["raw_minutes"]
    needed: dict[Path, Job] = {}
    for run in _users(plan, size):
        files = resources(size, run.data.task)
        if "vectors" in run.variant:
            command = ["floret_vectors", str(folder / "raw.txt"), str(files.vectors)]
            command += ["--lang", plan.lang(size)]
            job = _job("floret vectors", command, (files.vectors,), minutes["floret"])
        else:
            task = run.data.task
            command = ["pretrained_tok2vec", task, str(folder / "raw.jsonl"), str(files.tok2vec)]
            command += ["--lang", plan.lang(size)]
            job = _job(f"pretraining as for {task}", command, (files.tok2vec,), minutes["tok2vec"])
        needed.setdefault(job.outputs[0], job)
    return list(needed.values())


def needs_raw_text(run: Run) -> bool:
    """Return True if a run needs files that are made from raw text."""
    return run.variant in ("vectors", "elmo_vectors", "pretrain")


def _raw_text(plan: Plan, size: str, data_folder: Path) -> Path:
    return data_folder / f"pretrain-{plan.lang(size)}" / "train-*"


def _texts(size: str) -> tuple[Path, Path]:
    return Path("rivals", size, "raw.txt"), Path("rivals", size, "raw.jsonl")


def _users(plan: Plan, size: str) -> list[Run]:
    return [run for run in plan.runs(size) if needs_raw_text(run)]


def _job(name: str, command: list[str], outputs: Iterable[Path], minutes: float) -> Job:
    module, *arguments = command
    outputs = tuple(outputs)
    return Job(
        name=name,
        command=[sys.executable, "-m", f"experiments.{module}", *arguments],
        outputs=outputs,
        minutes=minutes,
        log=outputs[0].with_suffix(".log"),
    )

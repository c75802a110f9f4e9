"""Do the runs of a size that have no scores yet, with one process per core.

    python -m experiments.run base --data ../../data

The scores are added to `scores/SIZE.jsonl`. To repeat a run, delete its line.
"""

import argparse
import glob
import multiprocessing
import os
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import spacy
import srsly
from confection import Config
from spacy.cli.train import train
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import registry

from . import corpora, results
from .plan import Plan, Run
from .results import METRICS, Result
from .variants import derive

EVALUATIONS = 10
"""Least number of evaluations on dev in a run that has another number of steps than its config."""
EVERY = 200
"""Most steps between two evaluations: spaCy's default, which the configs have."""


def vectors_folder(size: str) -> Path:
    """Return the folder of the static vectors of a size."""
    return Path("vectors", size)


def run_config(run: Run) -> Config:
    """Return the complete config of a run, with its files, steps and seed."""
    config = derive(run.variant, run.task, vectors_folder(run.size))
    config["paths"].update(train=str(run.corpus("train").path), dev=str(run.corpus("dev").path))
    config["system"]["seed"] = run.seed
    config["nlp"]["lang"] = run.lang
    if run.variant.startswith("elmo"):
        config["components"]["elmo"]["weights"] = run.weights or "auto"
    # Compared runs have the same number of steps, and read the training text as it is.
    config["training"]["patience"] = 0
    config.get("corpora", {}).get("train", {}).pop("augmenter", None)
    if run.steps is not None:
        every = max(1, min(EVERY, run.steps // EVALUATIONS))
        config["training"].update(max_steps=run.steps, eval_frequency=every)
    config["training"]["logger"] = {
        "@loggers": "spacy.ConsoleLogger.v3",
        "progress_bar": None,
        "console_output": False,
        "output_file": str(run.folder / "log.jsonl"),
    }
    return config


def carry_out(run: Run) -> list[Result]:
    """Train a run and score its best step on all test parts."""
    # It registers the functions that configs name, and is in the working folder.
    import register  # noqa: F401

    began = time.process_time()
    run.folder.mkdir(parents=True, exist_ok=True)
    run_config(run).to_disk(run.folder / "config.cfg")
    train(run.folder / "config.cfg", run.folder, use_gpu=-1)
    nlp = spacy.load(run.folder / "model-best")
    scores = {test: nlp.evaluate(_examples(nlp, test.path)) for test in run.tests}
    minutes = (time.process_time() - began) / 60
    documents = len(DocBin().from_disk(run.corpus("train").path))
    log = srsly.read_jsonl(run.folder / "log.jsonl")
    dev = tuple((row["step"], 100 * row["score"]) for row in log)
    # The pipelines would take gigabytes.
    shutil.rmtree(run.folder / "model-last")
    if not run.pipeline_kept:
        shutil.rmtree(run.folder / "model-best")
    return [
        Result(
            run.task, test.data, run.share, run.variant, run.seed, 100 * each[METRICS[run.task][0]],
            minutes, documents, dev, test.noise, each["speed"],
        )
        for test, each in scores.items()
    ]  # fmt: skip


def _examples(nlp: Language, path: Path) -> list[Example]:
    """Return the examples of a corpus. The reader is that of the dev corpus, because a task may need annotations."""
    reader = Config({"corpora": {"dev": nlp.config["corpora"]["dev"]}, "paths": {"dev": str(path)}})
    return list(registry.resolve(reader.interpolate())["corpora"]["dev"](nlp))


def run(plan: Plan, size: str, data_folder: Path, processes: int) -> None:
    """Do the runs of a size that have no scores yet. Runs whose data are missing are skipped with a message."""
    section, out = plan.size(size), results.scores_file(size)
    lang, spelling = section.get("lang", "en"), corpora.spelling_of(section.get("weights"))
    raw_text = f"{data_folder}/pretrain-{lang}/train-*"
    scored = {result.key for result in results.read(out)}
    left = []
    for each in plan.runs(size):
        needed = [each.corpus("train"), each.corpus("dev"), *each.tests]
        files = {str(corpora.source(plan, corpus, data_folder)) for corpus in needed}
        if "vectors" in each.variant:
            files.add(raw_text)
        missing = sorted(file for file in files if not glob.glob(file))
        if all(results.key_of(each, test) in scored for test in each.tests):
            continue
        if missing:
            print(f"{each.folder} is skipped: there is no {', '.join(missing)}")
        else:
            left.append(each)
            for corpus in needed:
                corpora.make(plan, corpus, data_folder, spelling)
    if any("vectors" in each.variant for each in left):
        folder, words = vectors_folder(size), section.get("raw_words")
        corpora.make_vectors(folder, raw_text, words, lang, spelling)
    # A new process for each run, so that no run has the memory or the random numbers of another.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, max_tasks_per_child=1) as pool:
        for number, found in enumerate(pool.map(carry_out, left), 1):
            results.add(out, found)
            print(
                f"[{number}/{len(left)}] {left[number - 1].folder}: {found[0].score:.1f}",
                flush=True,
            )


def main() -> None:
    """Parse the arguments, and do the runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", metavar="SIZE")
    parser.add_argument("--data", type=Path, default=Path("assets"), help="the data folder")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args()
    # Inherited by the processes of the runs, so that their minutes are those of one core.
    os.environ.update({f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")})
    run(Plan(), args.size, args.data, args.processes)


if __name__ == "__main__":
    main()

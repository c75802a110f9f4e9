"""One run of the plan: train a variant, score its best step on the test parts, and write the scores.

A file of scores is that of `spacy evaluate --output` with an additional entry "run": the minutes of one core, the
number of training documents, and the dev score of each evaluation.
"""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import spacy
import srsly
from confection import Config
from spacy.cli.train import train
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import registry
from weasel.util import get_hash

from spacy_elmo.files import atomic_file, atomic_folder, remove_partial
from spacy_elmo.run_lock import lock
from spacy_elmo.weight_names import default_weights

from .plan import Run
from .results import record_of
from .rivals import resources
from .variants import derive, needs_elmo, read_pair

LAYERS = Path("layers")
"""Folder for the layers of the biLM, which all runs on a set share."""
EVALUATIONS = 10
"""Number of evaluations on dev in a run that has fewer steps than its config."""


def run_config(run: Run, log: Path) -> Config:
    """Return the complete config of a run, with its files, steps and seed.

    Args:
        log: file for the evaluations, as lines of JSON.
    """
    task = run.data.task
    config = derive(run.variant, task, read_pair(task), resources(run.size, task))
    config["paths"].update(train=str(run.corpus("train").path), dev=str(run.corpus("dev").path))
    config["system"]["seed"] = run.seed
    config["nlp"]["lang"] = run.lang
    if needs_elmo(run.variant):
        config["components"]["elmo"]["cache_dir"] = str(LAYERS)
        # Set by name, so that the digest of the config depends on the biLM.
        config["components"]["elmo"]["weights"] = run.weights or default_weights(run.lang)
    if run.steps is not None:
        every = max(1, run.steps // EVALUATIONS)
        config["training"].update(max_steps=run.steps, eval_frequency=every)
    config["training"]["logger"] = {
        "@loggers": "spacy.ConsoleLogger.v3",
        "progress_bar": None,
        "console_output": False,
        "output_file": str(log),
    }
    return config


def config_digest(run: Run) -> str:
    """Return the digest of the config with which a run would be trained now. Files of scores contain the digest of the
    config with which they were made."""
    return _digest(run_config(run, Path()))


def _digest(config: Config) -> str:
    trained = config.copy()
    # The paths of the log and of the layers do not change the training.
    del trained["training"]["logger"]
    trained["components"].get("elmo", {}).pop("cache_dir", None)
    return get_hash(trained)


def test_examples(nlp: Language, path: Path) -> list[Example]:
    """Return the examples of a corpus. The reader is that of the dev corpus, because a task may need annotations."""
    reader = Config({"paths": {"dev": str(path)}, "corpora": {"dev": nlp.config["corpora"]["dev"]}})
    reader["corpora"]["dev"]["path"] = str(path)
    return list(registry.resolve(reader)["corpora"]["dev"](nlp))


def done(run: Run) -> bool:
    """Return True if a run has scores that were made with its current config.

    Raises:
        ValueError: see `record_of`.
    """
    return all(
        path.is_file() and record_of(path).get("config") == config_digest(run)
        for path in run.metrics.values()
    )


def carry_out(run: Run) -> float:
    """Train a run, score it and write the scores. Return its minutes of one core; 0.0 if another process has done it.

    Raises:
        BlockingIOError: another process is doing this run.
        FileNotFoundError: a corpus does not exist.
    """
    for corpus in run.corpora:
        if not corpus.path.is_file():
            raise FileNotFoundError(f"There is no corpus {corpus.path}; experiments.run makes it")
    for path in (run.folder, *run.metrics.values()):
        path.parent.mkdir(parents=True, exist_ok=True)
    with lock(next(iter(run.metrics.values()))):
        if done(run):
            return 0.0
        # A process that was killed may have left a partial folder.
        remove_partial(run.folder.parent, run.folder.name)
        return _train(run)


def _train(run: Run) -> float:
    began = time.process_time()
    with atomic_folder(run.folder) as folder:
        config = run_config(run, folder / "log.jsonl")
        config.to_disk(folder / "config.cfg")
        train(folder / "config.cfg", folder, use_gpu=-1)
        shutil.rmtree(folder / "model-last")
        nlp = spacy.load(folder / "model-best")
        scores = {test: nlp.evaluate(test_examples(nlp, test.path)) for test in run.metrics}
        minutes = (time.process_time() - began) / 60
        record = {"config": _digest(config), **_record(run, folder / "log.jsonl", minutes)}
        # The other pipelines would take gigabytes, and nothing uses them.
        if not run.pipeline_kept:
            shutil.rmtree(folder / "model-best")
    for test, path in run.metrics.items():
        with atomic_file(path) as file:
            file.write_text(json.dumps({**scores[test], "run": record}, indent=2), "utf8")
    return minutes


def _record(run: Run, log: Path, minutes: float) -> dict[str, Any]:
    documents = len(DocBin().from_disk(run.corpus("train").path))
    judged = [(row["step"], row["score"]) for row in srsly.read_jsonl(log)]
    return {"minutes": minutes, "documents": documents, "dev": judged}

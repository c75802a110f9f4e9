"""One run of the plan: train a variant, score its best step on the test parts, and write the scores.

    python -m experiments.training plan.yml small wnut17/ner_elmo-0

The scores are a file as `spacy evaluate --output` writes it, and "run" in it: minutes of one core, the training
documents, and the score on dev at each evaluation.
"""

import argparse
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

from spacy_elmo.pipeline.weight_names import default_weights

from .digest import digest
from .plan import Plan, Run
from .rivals import resources
from .variants import derive, needs_elmo, read_pair
from .whole_file import whole_file, whole_folder

LAYERS = Path("layers")
"""Folder of the layers of the biLM, which are the same in all runs on a set."""
EVALUATIONS = 10
"""Number of evaluations on dev of a run that is shorter than its config."""


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
        # By name, so that scores keep which biLM they are of.
        config["components"]["elmo"]["weights"] = run.weights or default_weights(run.lang)
    if run.steps is not None:
        every = max(1, run.steps // EVALUATIONS)
        config["training"].update(max_steps=run.steps, eval_frequency=every)
    config["training"]["logger"] = {
        "@loggers": "spacy.ConsoleLogger.v3",
        "progress_bar": None,
        "console_output": True,
        "output_file": str(log),
    }
    return config


def config_digest(run: Run) -> str:
    """Return the digest of the config by which a run would be trained now. Its scores keep the digest of their own
    config."""
    return _digest(run_config(run, Path()))


def _digest(config: Config) -> str:
    trained = config.copy()
    # Neither the path of the log nor that of the layers changes the training.
    del trained["training"]["logger"]
    trained["components"].get("elmo", {}).pop("cache_dir", None)
    return digest(trained)


def test_examples(nlp: Language, path: Path) -> list[Example]:
    """Return the examples of a corpus by the reader of the dev corpus: a task may need annotations."""
    reader = Config({"paths": {"dev": str(path)}, "corpora": {"dev": nlp.config["corpora"]["dev"]}})
    reader["corpora"]["dev"]["path"] = str(path)
    return list(registry.resolve(reader)["corpora"]["dev"](nlp))


def carry_out(run: Run) -> None:
    """Train a run, score it and write the scores.

    Raises:
        FileNotFoundError: a corpus does not exist.
    """
    for corpus in run.corpora:
        if not corpus.path.is_file():
            raise FileNotFoundError(f"{corpus.path}: no such corpus; experiments.run makes it")
    with whole_folder(run.folder) as folder:
        config = run_config(run, folder / "log.jsonl")
        config.to_disk(folder / "config.cfg")
        train(folder / "config.cfg", folder, use_gpu=-1)
        shutil.rmtree(folder / "model-last")
        nlp = spacy.load(folder / "model-best")
        scores = {test: nlp.evaluate(test_examples(nlp, test.path)) for test in run.metrics}
        record = {"config": _digest(config), **_record(run, folder / "log.jsonl")}
        # All others would be gigabytes that nobody reads.
        if not run.pipeline_kept:
            shutil.rmtree(folder / "model-best")
    for test, path in run.metrics.items():
        with whole_file(path) as file:
            file.write_text(json.dumps({**scores[test], "run": record}, indent=2), "utf8")


def _record(run: Run, log: Path) -> dict[str, Any]:
    documents = len(DocBin().from_disk(run.corpus("train").path))
    judged = [(row["step"], row["score"]) for row in srsly.read_jsonl(log)]
    return {"minutes": time.process_time() / 60, "documents": documents, "dev": judged}


def main() -> None:
    """Parse the arguments and carry out the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument("size", metavar="SIZE")
    parser.add_argument("name", metavar="RUN", help="such as wnut17/ner_elmo-0")
    args = parser.parse_args()
    # What configs name; the folder that this runs in is on the path of modules.
    import register  # noqa: F401

    from . import init_tok2vec, numpy_ops  # noqa: F401

    try:
        carry_out(Plan.read(args.plan).run(args.size, args.name))
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()

"""Print the scores of several seeds as a Markdown table: mean and standard deviation per data set and config.

    python score_table.py metrics

It reads files of `spacy evaluate --output` that are called metrics/DATASET/CONFIG-SEED.json, such as
metrics/wnut17/ner_elmo-0.json. The name of a config begins with its task. The last column is the share of the errors of
TASK_baseline that a config avoids, (score - baseline) / (100 - baseline), as in Peters et al. (2018, table 1).
"""

import argparse
import json
import re
import statistics
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple


class Metric(NamedTuple):
    """The metric of a task."""

    key: str
    """The name of the metric in spaCy's scores."""
    name: str


NAME = re.compile(r"(?P<config>(?P<task>[a-z]+)(_\w+)?)-(?P<seed>\d+)")
METRICS = {
    "ner": Metric("ents_f", "F1"),
    "tagger": Metric("tag_acc", "accuracy"),
    # If each text has one label, the micro-averaged F1 is the accuracy.
    "textcat": Metric("cats_micro_f", "accuracy"),
    "parser": Metric("dep_las", "LAS"),
    "srl": Metric("srl_f", "F1"),
    "nli": Metric("nli_acc", "accuracy"),
    "qa": Metric("qa_f", "F1"),
    "coref": Metric("coref_f", "average F1"),
}
# Scores in percent, by (dataset, task, config) and by seed.
Scores = dict[tuple[str, str, str], dict[int, float]]


def read_scores(folder: Path) -> Scores:
    """Read the metric of the task from every file in the folder.

    Raises:
        ValueError: there is no file, or a file has a wrong name or no metric.
    """
    scores: Scores = defaultdict(dict)
    for path in sorted(folder.glob("*/*.json")):
        name = NAME.fullmatch(path.stem)
        if name is None or name["task"] not in METRICS:
            raise ValueError(
                f"{path} must have a name such as ner_elmo-0.json, with a config and a seed; the config begins with one"
                f" of {', '.join(METRICS)}"
            )
        metric = METRICS[name["task"]].key
        try:
            value = json.loads(path.read_text(encoding="utf-8")).get(metric)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{path} is not JSON ({error}); remove it and evaluate again"
            ) from error
        if value is None:
            raise ValueError(f"{path} has no {metric}; evaluate a pipeline with this component")
        scores[path.parent.name, name["task"], name["config"]][int(name["seed"])] = 100 * value
    if not scores:
        raise ValueError(f"{folder} has no DATASET/CONFIG-SEED.json; run the evaluation first")
    return dict(scores)


def table(scores: Scores) -> str:
    """Return a table with a row for each data set and config. It has the sample standard deviation (n - 1) if there are
    several seeds."""
    rows = [
        "| data | config | metric | seeds | mean | sd | each | fewer errors |",
        "|---|---|---|---|---:|---:|---|---:|",
    ]
    for (dataset, task, config), by_seed in sorted(scores.items()):
        values = [by_seed[seed] for seed in sorted(by_seed)]
        spread = f"{statistics.stdev(values):.1f}" if len(values) > 1 else "-"
        seeds = ", ".join(map(str, sorted(by_seed)))
        each = ", ".join(f"{value:.1f}" for value in values)
        mean = statistics.mean(values)
        baseline = scores.get((dataset, task, f"{task}_baseline"), by_seed)
        fewer = None
        if baseline is not by_seed:
            fewer = fewer_errors(mean, statistics.mean(baseline.values()))
        cells = [
            dataset,
            config,
            METRICS[task].name,
            seeds,
            f"{mean:.1f}",
            spread,
            each,
            percent(fewer),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def fewer_errors(score: float, baseline: float) -> float | None:
    """Return the share of the baseline's errors that are avoided; None if the baseline makes no errors.

    Args:
        score, baseline: percent.
    """
    return (score - baseline) / (100 - baseline) if baseline < 100 else None


def percent(share: float | None) -> str:
    """Format a share as a cell of the table."""
    return "-" if share is None else f"{share:.1%}"


def main() -> None:
    """Print the table of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="METRICS")
    try:
        print(table(read_scores(parser.parse_args().folder)))
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()

"""Print the scores of several seeds as a Markdown table: mean and standard deviation per data set and config.

    python scripts/score_table.py metrics

Reads what `spacy evaluate --output` wrote as metrics/DATASET/CONFIG-SEED.json, such as metrics/wnut17/ner_elmo-0.json.
A config's name begins with that of its task. The last column is the share of the errors of TASK_baseline that a config
does without, (score - baseline) / (100 - baseline), as Peters et al. (2018, table 1) compare tasks.
"""

import argparse
import json
import re
import statistics
from collections import defaultdict
from pathlib import Path

NAME = re.compile(r"(?P<config>(?P<task>[a-z]+)(_\w+)?)-(?P<seed>\d+)")
# Of texts with one label each, the micro-averaged F1 is the accuracy.
METRICS = {
    "ner": "ents_f", "tagger": "tag_acc", "textcat": "cats_micro_f", "parser": "dep_las",
    "srl": "srl_f", "nli": "nli_acc", "qa": "qa_f", "coref": "coref_f",
}  # fmt: skip
# Dataset, task and config -> seed -> percent.
Scores = dict[tuple[str, str, str], dict[int, float]]


def read_scores(folder: Path) -> Scores:
    """The task's metric of every file under the folder.

    Raises:
        ValueError: no file, or a file with another name or without the metric.
    """
    scores: Scores = defaultdict(dict)
    for path in sorted(folder.glob("*/*.json")):
        name = NAME.fullmatch(path.stem)
        if name is None or name["task"] not in METRICS:
            raise ValueError(
                f"{path}: expected a name such as ner_elmo-0.json: config and seed, the config one of"
                f" {', '.join(METRICS)}"
            )
        metric = METRICS[name["task"]]
        value = json.loads(path.read_text(encoding="utf-8")).get(metric)
        if value is None:
            raise ValueError(f"{path}: no {metric} in it; was the component evaluated?")
        scores[path.parent.name, name["task"], name["config"]][int(name["seed"])] = 100 * value
    if not scores:
        raise ValueError(f"{folder}: no DATASET/CONFIG-SEED.json in it; run the evaluation first")
    return dict(scores)


def table(scores: Scores) -> str:
    """One row per data set and config. The deviation is that of a sample (n - 1), unknown for one seed."""
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
        fewer = "-"
        if baseline is not by_seed:
            fewer = fewer_errors(mean, statistics.mean(baseline.values()))
        rows.append(
            f"| {dataset} | {config} | {METRICS[task]} | {seeds} | {mean:.1f} | {spread} | {each} | {fewer} |"
        )
    return "\n".join(rows)


def fewer_errors(score: float, baseline: float) -> str:
    """The share of the baseline's errors that are gone; "-": it made none.

    Args:
        score, baseline: percent.
    """
    return f"{(score - baseline) / (100 - baseline):.1%}" if baseline < 100 else "-"


def main() -> None:
    """Parse and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="METRICS")
    try:
        print(table(read_scores(parser.parse_args().folder)))
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()

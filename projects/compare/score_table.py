"""Print the scores of several seeds as a Markdown table: mean and standard deviation per data set and config.

    python score_table.py metrics

It reads files of `spacy evaluate --output` that are called metrics/DATASET/CONFIG-SEED.json, such as
metrics/wnut17/ner_elmo-0.json. The name of a config begins with its task. The last column is the share of the errors of
TASK_baseline that a config avoids, (score - baseline) / (100 - baseline), as in Peters et al. (2018, table 1).
"""

import argparse
import statistics
from collections import defaultdict
from pathlib import Path

import srsly

METRICS = {
    "ner": ("ents_f", "F1"),
    "tagger": ("tag_acc", "accuracy"),
    # If each text has one label, the micro-averaged F1 is the accuracy.
    "textcat": ("cats_micro_f", "accuracy"),
}
"""For each task, the name of its metric in spaCy's scores and in the table."""


def table(folder: Path) -> str:
    """Return a table with a row for each data set and config. It has the sample standard deviation (n - 1) if there are
    several seeds."""
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for path in sorted(folder.glob("*/*.json")):
        config = path.stem.rpartition("-")[0]
        key, _ = METRICS[config.partition("_")[0]]
        scores[path.parent.name, config].append(100 * srsly.read_json(path)[key])
    rows = [
        "| data | config | metric | mean | sd | seeds | fewer errors |",
        "|---|---|---|---:|---:|---|---:|",
    ]
    for (dataset, config), values in scores.items():
        task, mean = config.partition("_")[0], statistics.mean(values)
        spread = f"{statistics.stdev(values):.1f}" if len(values) > 1 else "-"
        baseline = scores.get((dataset, f"{task}_baseline"))
        fewer = "-"
        if baseline and config != f"{task}_baseline":
            fewer = f"{(mean - statistics.mean(baseline)) / (100 - statistics.mean(baseline)):.1%}"
        each = ", ".join(f"{value:.1f}" for value in values)
        rows.append(
            f"| {dataset} | {config} | {METRICS[task][1]} | {mean:.1f} | {spread} | {each} | {fewer} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Print the table of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="METRICS")
    print(table(parser.parse_args().folder))


if __name__ == "__main__":
    main()

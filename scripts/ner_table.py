"""Print the scores of several seeds as a Markdown table: mean and standard deviation per data set and config.

    python scripts/ner_table.py metrics

Reads what `spacy evaluate --output` wrote as metrics/DATASET/CONFIG-SEED.json.
"""

import argparse
import json
import re
import statistics
from collections import defaultdict
from pathlib import Path

NAME = re.compile(r"(?P<config>.+)-(?P<seed>\d+)")
# Dataset and config -> seed -> percent.
Scores = dict[tuple[str, str], dict[int, float]]


def read_scores(folder: Path, metric: str = "ents_f") -> Scores:
    """The metric of every file under the folder.

    Raises:
        ValueError: no file, or a file with another name or without the metric.
    """
    scores: Scores = defaultdict(dict)
    for path in sorted(folder.glob("*/*.json")):
        name = NAME.fullmatch(path.stem)
        if name is None:
            raise ValueError(f"{path}: expected a name such as ner_elmo-0.json, config and seed")
        value = json.loads(path.read_text(encoding="utf-8")).get(metric)
        if value is None:
            raise ValueError(f"{path}: no {metric} in it; was the component evaluated?")
        scores[path.parent.name, name["config"]][int(name["seed"])] = 100 * value
    if not scores:
        raise ValueError(f"{folder}: no DATASET/CONFIG-SEED.json in it; run the evaluation first")
    return dict(scores)


def table(scores: Scores) -> str:
    """One row per data set and config. The deviation is that of a sample (n - 1), unknown for one seed."""
    rows = ["| data | config | seeds | mean | sd | each |", "|---|---|---|---:|---:|---|"]
    for (dataset, config), by_seed in sorted(scores.items()):
        values = [by_seed[seed] for seed in sorted(by_seed)]
        spread = f"{statistics.stdev(values):.1f}" if len(values) > 1 else "-"
        seeds = ", ".join(map(str, sorted(by_seed)))
        each = ", ".join(f"{value:.1f}" for value in values)
        mean = statistics.mean(values)
        rows.append(f"| {dataset} | {config} | {seeds} | {mean:.1f} | {spread} | {each} |")
    return "\n".join(rows)


def main() -> None:
    """Parse and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="METRICS")
    parser.add_argument("--metric", default="ents_f", help="key of the metrics files")
    args = parser.parse_args()
    try:
        print(table(read_scores(args.folder, args.metric)))
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()

"""Networks and ways of training at equal processor time: held-out perplexity, as a table and a picture.

    python scripts/size_study.py rates CORPUS OUT                # words a second of each point, on a quiet machine
    python scripts/size_study.py run CORPUS OUT [POINT ...]      # continues after a stop
    python scripts/size_study.py report OUT docs/assets/size_study.png

CORPUS is a prepared corpus, and size_study.yml has the points. `rates` measures each for half a minute; a point then
reads as many words as it would in `--minutes` of one quiet core. So the learning rate falls to zero at the end of each
run, and other work on the machine changes how long it takes, but no result.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import srsly
from wasabi import msg

from spacy_elmo.analysis.figures import save_figure

CONFIG = Path(__file__).parent.parent / "configs" / "pretrain_base.cfg"
POINTS: Mapping[str, Mapping[str, Any]] = srsly.read_yaml(Path(__file__).with_suffix(".yml"))
WARMUP_STEPS = 60
"""Steps in which the learning rate rises, unless a point has others: the config's 200 are a third of such a run."""
EVALUATIONS = 8


def settings(point: str, words: int) -> dict[str, Any]:
    """Return the settings of a point that differ from the config, for a run of so many words."""
    changes = {"training.warmup_steps": WARMUP_STEPS, **POINTS[point]}
    steps = words // changes.get("training.batch_tokens", 4096)
    return {
        **changes,
        "training.max_tokens": words,
        "training.eval_every": max(1, steps // EVALUATIONS),
    }


def train(corpus: Path, out: Path, changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Train into a folder, or go on there, and return the lines of its log."""
    command = [sys.executable, "-m", "spacy", "elmo", "pretrain", str(CONFIG), str(out)]
    prepared = srsly.read_json(corpus / "corpus.json")["prepare"]
    command += ["--paths.corpus", str(corpus), "--prepare.tokenized", str(prepared["tokenized"])]
    for name, value in changes.items():
        command += [f"--{name}", json.dumps(value) if isinstance(value, list) else str(value)]
    if (out / "checkpoint").is_dir():
        command.append("--resume")
    subprocess.run(command, check=True)
    return list(srsly.read_jsonl(out / "log.jsonl"))


def measure_rates(corpus: Path, out: Path, points: list[str]) -> None:
    """Measure words per second of points, as the median of a short run, and add them to OUT/rates.json."""
    file = out / "rates.json"
    rates = srsly.read_json(file) if file.exists() else {}
    for point in points:
        short = {"max_minutes": 0.5, "log_every": 3, "eval_every": 10**6, "eval_tokens": 200}
        changes = dict(POINTS[point]) | {f"training.{key}": short[key] for key in short}
        rows = train(corpus, out / "rates" / point, changes)
        # The first line contains what is done once.
        rates[point] = round(statistics.median(row["tokens_per_second"] for row in rows[1:]))
        srsly.write_json(file, rates)


def run(corpus: Path, out: Path, points: list[str], minutes: float) -> None:
    """Train points, each for as many words as it reads in `minutes` of a quiet core."""
    rates = srsly.read_json(out / "rates.json")
    for point in points:
        train(corpus, out / point, settings(point, int(rates[point] * minutes * 60)))


def read_curves(out: Path) -> list[dict[str, Any]]:
    """Return the evaluations of the finished points: perplexity, words read, and minutes of a quiet core."""
    rates = srsly.read_json(out / "rates.json")
    curves = []
    for point in POINTS:
        if not (out / point / "model-last.safetensors").exists():
            continue
        for row in srsly.read_jsonl(out / point / "log.jsonl"):
            if row["dev"]:
                minutes = row["tokens"] / rates[point] / 60
                words, perplexity = row["tokens"], row["dev"]["mean"]
                curves.append(
                    {"point": point, "minutes": minutes, "words": words, "perplexity": perplexity}
                )
    return curves


def chart(curves: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the Vega-Lite chart of perplexity over minutes, with the points in the order of their last values."""
    order = sorted(
        {row["point"] for row in curves}, key=lambda point: _last(curves, point)["perplexity"]
    )
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": "Held-out perplexity at equal processor time",
        "data": {"values": curves},
        "width": 520,
        "height": 360,
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "minutes", "type": "quantitative", "title": "minutes of one core"},
            "y": {
                "field": "perplexity",
                "type": "quantitative",
                "scale": {"type": "log", "zero": False},
                "title": "perplexity, logarithmic",
            },
            "color": {
                "field": "point",
                "type": "nominal",
                "sort": order,
                "title": None,
                "scale": {"scheme": "tableau20"},
            },
            "tooltip": [{"field": name} for name in ("point", "minutes", "words", "perplexity")],
        },
    }


def table(curves: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a Markdown table: the last evaluation of each point, the best one first."""
    last = [_last(curves, point) for point in dict.fromkeys(row["point"] for row in curves)]
    lines = ["| point | changes | million words | perplexity |", "|---|---|---:|---:|"]
    for row in sorted(last, key=lambda row: row["perplexity"]):
        changes = ", ".join(f"`{key}` {value}" for key, value in POINTS[row["point"]].items())
        lines.append(
            f"| {row['point']} | {changes} | {row['words'] / 1e6:.1f} | {row['perplexity']:.1f} |"
        )
    return lines


def _last(curves: list[dict[str, Any]], point: str) -> dict[str, Any]:
    return [row for row in curves if row["point"] == point][-1]


def main() -> None:
    """Parse the command and carry it out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("rates", "run"):
        command = commands.add_parser(name)
        command.add_argument("corpus", type=Path)
        command.add_argument("out", type=Path)
        command.add_argument("points", nargs="*", metavar="POINT", help="default: all")
    commands.choices["run"].add_argument("--minutes", type=float, default=15.0)
    report = commands.add_parser("report")
    report.add_argument("out", type=Path)
    report.add_argument("picture", type=Path)
    args = parser.parse_args()
    if args.command == "report":
        curves = read_curves(args.out)
        save_figure(chart(curves), args.picture, title="Size study")
        print("\n".join(table(curves)))
        msg.good(str(args.picture))
    elif args.command == "rates":
        measure_rates(args.corpus, args.out, args.points or list(POINTS))
    else:
        run(args.corpus, args.out, args.points or list(POINTS), args.minutes)


if __name__ == "__main__":
    main()

"""The course of a pretraining as a picture: held-out perplexity and learning rate by the number of words read.

    python scripts/training_curve.py runs/base/log.jsonl perplexity.png

`log.jsonl` is that of a folder of `python -m spacy elmo pretrain`. Prints the evaluations as a Markdown table, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import srsly
from wasabi import msg

from spacy_elmo.analysis.figures import save_figure


def read_evaluations(log: Path) -> list[dict[str, float]]:
    """Return the evaluations of a run, in their order.

    Returns:
        For each: `words` in millions, `learn_rate`, and `perplexity`, the mean of both directions.
    """
    return [
        {
            "words": row["tokens"] / 1e6,
            "learn_rate": row["learn_rate"],
            "perplexity": row["dev"]["mean"],
        }
        for row in srsly.read_jsonl(log)
        if row["dev"]
    ]


def table(evaluations: Sequence[Mapping[str, float]]) -> str:
    """Return the evaluations as a table in Markdown."""
    lines = [
        "| words read, millions | learning rate | held-out perplexity |",
        "|---:|---:|---:|",
    ]
    lines += [
        f"| {row['words']:.1f} | {row['learn_rate']:.2g} | {row['perplexity']:.1f} |"
        for row in evaluations
    ]
    return "\n".join(lines)


def chart(evaluations: Sequence[Mapping[str, float]]) -> Mapping[str, Any]:
    """Return a Vega-Lite chart with a panel for the perplexity and one for the learning rate."""

    def panel(field: str, title: str, height: int, scale: str) -> Mapping[str, Any]:
        x = {"field": "words", "type": "quantitative", "title": "words read (millions)"}
        y = {
            "field": field,
            "type": "quantitative",
            "scale": {"type": scale, "zero": False, "nice": False, "padding": 10},
            "title": title,
        }
        mark = {"type": "line", "point": {"size": 30}, "color": "#3b528b"}
        return {"width": 480, "height": height, "mark": mark, "encoding": {"x": x, "y": y}}

    return {
        "data": {"values": list(evaluations)},
        "vconcat": [
            panel("perplexity", "held-out perplexity, logarithmic", 240, "log"),
            panel("learn_rate", "learning rate", 120, "linear"),
        ],
    }


def main() -> None:
    """Print the table and draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", type=Path, help="log.jsonl of a run")
    parser.add_argument("picture", type=Path, help="PNG file to write")
    args = parser.parse_args()
    evaluations = read_evaluations(args.log)
    if not evaluations:
        raise SystemExit(f"{args.log}: no evaluation yet; training.eval_every says how often")
    print(table(evaluations))
    save_figure(chart(evaluations), args.picture, title="Held-out perplexity of a pretraining")
    msg.good(str(args.picture))


if __name__ == "__main__":
    main()

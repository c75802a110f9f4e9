"""Write the tables of benchmarks/results/README.md from the results of `make bench`, one part per processor.

python -m scripts.speed_tables            # writes the tables
python -m scripts.speed_tables --check    # fails if the page has other tables
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.marked_page import ROOT, Row, renew, table

RESULTS = ROOT / "benchmarks" / "results"
BATCH = 32
"""Number of sentences in a batch in the table of inference. The files have results for other numbers too."""

Report = Mapping[str, Any]


def training_rows(report: Report) -> list[Row]:
    """Return rows with the words per second of the networks on the same batches, in prediction and in training."""
    return [
        {
            "2,000 words a batch": f"{size}, {task}",
            **{name: f"{speed:,.0f}" for name, speed in speeds[task].items()},
            **{
                f"{precision} to AllenNLP": f"{speeds[task][precision] / speeds[task]['AllenNLP']:.1f}"
                for precision in ("float32", "bfloat16")
                if {precision, "AllenNLP"} <= speeds[task].keys()
            },
        }
        for size, speeds in report["training"].items()
        if isinstance(speeds, dict)
        for task in ("prediction", "training")
    ]


def inference_rows(report: Report) -> list[Row]:
    """Return rows with the words per second of all contenders, one for each size and number of threads."""
    rows: dict[tuple[str, int], dict[str, str]] = {}
    for result in report["inference"]:
        if result["batch"] == BATCH:
            size, threads, side = result["size"], result["threads"], result["side"]
            name = f"{size}, {'one thread' if threads == 1 else f'{threads} threads'}"
            row = rows.setdefault((size, threads), {f"batches of {BATCH} sentences": name})
            rival = side["kind"] not in ("network", "nlp.pipe", "products")
            column = side["kind"] if rival else f"{side['kind']}, {side['precision']}"
            row[column] = f"{result['words per second']:,.0f}"
    return list(rows.values())


def profile_rows(report: Report) -> list[Row]:
    """Return rows with the operations of training, and with the shares of the three slowest kinds of operation."""
    return [
        {
            "training": f"{size}, {precision}",
            "words/s": f"{result['words per second']:,.0f}",
            "MFLOP a word": f"{result['MFLOP a word']:.1f}",
            "GFLOP/s": f"{result['GFLOP/s']:.0f}",
            "fastest product": f"{result['GFLOP/s of the fastest product']:.0f}",
            "share": f"{result['utilization']:.0%}",
            "time": ", ".join(f"{kind} {share:.0%}" for kind, share in list(result["shares"].items())[:3]),
        }
        for size, precisions in report["training by kind of operation"].items()
        for precision, result in precisions.items()
    ]  # fmt: skip


def part(path: Path) -> str:
    """Return the part of the page about one processor.

    Args:
        path: the processor's file in benchmarks/results.
    """
    report = json.loads(path.read_text("utf8"))
    processor, milliseconds = report["processor"], report["milliseconds"]
    gates = report["nanoseconds a cell of the gates"]
    return "\n\n".join(
        [
            f"## {processor['name']}, family {processor['family']}: {report['kernels'].split(';')[0]}",
            f"{report['date']}, torch {report['torch']}, instructions {', '.join(processor['instructions'])}"
            f" ([all figures]({path.name}), [picture]({path.stem}.png)).",
            table(training_rows(report)),
            table(inference_rows(report)),
            table(profile_rows(report)),
            f"The LSTM gates take {' and '.join(f'{time:.2f} ns a cell in {name}' for name, time in gates.items())}."
            f" A short sentence takes {milliseconds['one sentence']['float32']['median']:.1f} ms (mini, median)."
            f" spaCy's start takes {milliseconds['import']['added']:.0f} ms more with this package.",
        ]
    )


def main() -> None:
    """Write the tables into the page, or check that it has them."""
    parts = [part(path) for path in sorted(RESULTS.glob("*.json"))]
    renew(RESULTS / "README.md", "speeds", "\n\n".join(parts), __doc__)


if __name__ == "__main__":
    main()

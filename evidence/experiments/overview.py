"""Draw one picture of the gains of ELMo, from the reports of several sizes.

python -m experiments.overview report/gains.png report/base report/la report/grc report/cs report/de
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from spacy_elmo.lab.figures import save_figure

from .gain_chart import VARIANT_NAMES, chart_of_gains
from .report import TITLE
from .results import fewer_errors

TASKS = {"ner": "named entities", "tagger": "tags", "textcat": "text categories"}
"""Names of spaCy's components in plain words."""


def read_gains(report: Path) -> list[dict[str, Any]]:
    """Return the gains of a report, from the first table of its page.

    Args:
        report: folder of report.md.

    Returns:
        A row for each set and variant if the variant and the baseline have scores: `set`, with the language
        from the title of the page, `model`, and `gain` in percent.

    Raises:
        OSError, ValueError: there is no such page, or it has no table of scores.
    """
    page = (report / "report.md").read_text("utf8")
    table = page.partition("| task and data | metric | baseline |")
    if not table[1]:
        raise ValueError(f"{report / 'report.md'} has no table of scores")
    language = page.splitlines()[0].removeprefix(f"# {TITLE}").removeprefix(": ") or "English"
    head, _, *lines = (table[1] + table[2]).partition("\n\n")[0].splitlines()
    rows = []
    for line in lines:
        cells = dict(zip(_cells(head), _cells(line), strict=True))
        for variant, name in VARIANT_NAMES.items():
            score = cells.get(variant, "-")
            if "-" in (score, cells["baseline"]):
                continue
            share = fewer_errors(_mean(score), _mean(cells["baseline"]))
            if share is not None:
                task, _, data = cells["task and data"].partition(", ")
                label = f"{language}, {TASKS.get(task, task)}: {data}"
                rows.append({"set": label, "model": name, "gain": 100 * share})
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _mean(score: str) -> float:
    """Return the mean of a cell, such as 38.5 for "38.5 ± 0.5 (3)"."""
    return float(score.split()[0])


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", type=Path, metavar="PICTURE")
    parser.add_argument(
        "reports", type=Path, nargs="+", metavar="REPORT", help="folder of report.md"
    )
    args = parser.parse_args()
    try:
        rows = [row for report in args.reports for row in read_gains(report)]
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    save_figure(chart_of_gains(rows), args.picture)


if __name__ == "__main__":
    main()

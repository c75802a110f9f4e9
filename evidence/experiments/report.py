"""Write the report of a size from its scores: `report/SIZE/report.md` and its pictures.

python -m experiments.report base
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import srsly

from spacy_elmo.lab.layer_charts import save_chart

from . import charts, tables
from .plan import Plan
from .results import Results, read, scores_file

TITLE = "What ELMo brings to spaCy"
ONE_ANSWER = "The F1 of qa is against the one answer of its row; SQuAD takes the best of several."
SAMPLE = (
    "The sentences of the table are of the sample corpus, unless told otherwise, which was written for this project. In"
    " layer 0 all uses of one spelling are equal, and the first is shown."
)
OTHER_PART = "Ours are test scores; those of the paper's table are of its development sets."


def report(results: Results, paper: Mapping[str, Any], folder: Path, title: str) -> str:
    """Return the report as Markdown, from all results so far.

    Args:
        paper: the results of Peters et al. (2018), from paper.yml; empty for other languages than English.
        folder: folder of the report, with its pictures and the JSON files of the probes.
    """

    def cited(name: str) -> str:
        return tables.table(**paper[name]) if name in paper else ""

    def figure(name: str, caption: str) -> str:
        return f"![{caption}]({name})\n\n*{caption}*" if (folder / name).is_file() else ""

    one_answer = ONE_ANSWER if any(task == "qa" for task, _ in results.sets) else ""
    errors_removed = figure("gains.png", "Errors removed, compared with the baseline")
    updates = tables.updates(results)
    # A heading, what it needs to be shown, and what is around that.
    sections = [
        ("Tasks", tables.gains(results), one_answer, tables.tasks(results), cited("tasks"), errors_removed),
        _beside_the_paper("Which layers", OTHER_PART, tables.weighting(results), cited("weighting")),
        _beside_the_paper("Where ELMo enters", OTHER_PART, tables.place(results), cited("place")),
        (
            "Less data, fewer updates",
            paper.get("efficiency", "").strip() if updates else "",
            tables.shares(results),
            updates,
            figure("shares.png", "Scores by the share of the training data; figure 1 of the paper"),
        ),
        (
            "Errors in the text",
            tables.noise(results),
            figure("noise.png", "Scores by the share of the words that have an error"),
        ),
        _beside_the_paper("Word senses", "", tables.senses(folder), cited("senses")),
        _beside_the_paper("Parts of speech", "", tables.tags(folder), cited("tags")),
        _beside_the_paper("A word in its context", SAMPLE, tables.neighbors(folder), ""),
        ("Learned weights", figure("layers.png", "Learned weights of the layers; figure 2 of the paper")),
        ("Time", tables.minutes(results)),
    ]  # fmt: skip
    parts = [f"# {title}"]
    for heading, *content in sections:
        if any(content):
            parts += [f"## {heading}", *filter(None, content)]
    return "\n\n".join(parts) + "\n"


def _beside_the_paper(heading: str, text: str, ours: str, cited: str) -> tuple[str, ...]:
    """Return a section with a table of ours and one of the paper; without content if there is no table of ours."""
    return (heading, text, ours, cited) if ours else (heading,)


def draw(results: Results, plan: Plan, size: str, paper: Mapping[str, Any]) -> None:
    """Draw the charts, and with `spacy elmo layers` the learned layer weights of the pipelines that were kept."""
    folder = Path("report", size)
    drawn = {
        "gains.png": charts.gain_chart(results, paper.get("same_kind", {})),
        "shares.png": charts.share_chart(results),
        "noise.png": charts.noise_chart(results),
    }
    for name, chart in drawn.items():
        if chart is not None:
            save_chart(chart, folder / name)
    kept = (run.folder / "model-best" for run in plan.runs(size) if run.pipeline_kept)
    if found := sorted(str(path) for path in kept if path.is_dir()):
        command = [sys.executable, "-m", "spacy", "elmo", "layers", *found, "--code", "register.py"]
        subprocess.run([*command, "--out", str(folder / "layers.png")], check=True)


def main() -> None:
    """Draw the pictures, write the report, and print its path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", metavar="SIZE")
    size = parser.parse_args().size
    plan = Plan()
    section, folder = plan.size(size), Path("report", size)
    results = Results(read(scores_file(size)), plan)
    if not results.all:
        raise SystemExit(f"{scores_file(size)} has no scores; `spacy project run runs` makes them")
    # The paper's data are English.
    paper = srsly.read_yaml("paper.yml") if section.get("lang", "en") == "en" else {}
    title = f"{TITLE}: {section['title']}" if "title" in section else TITLE
    folder.mkdir(parents=True, exist_ok=True)
    draw(results, plan, size, paper)
    (folder / "report.md").write_text(report(results, paper, folder, title), "utf8")
    print(folder / "report.md")


if __name__ == "__main__":
    main()

"""Write the report of a size: `report.md` with its pictures, `report.html` as a single file, and `scores.jsonl`.

`scores.jsonl` has all scores of the report, so the next report can add to them.

python -m experiments.report plan.yml full
"""

from __future__ import annotations

import argparse
import base64
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import srsly

from spacy_elmo.files import atomic_file
from spacy_elmo.lab.figures import save_figure

from . import tables
from .curve_chart import noise_chart, share_chart
from .findings import gains, progress, rivals, text_read
from .gain_chart import gain_chart
from .neighbor_table import neighbor_table
from .plan import Plan
from .probe_tables import sense_table, tag_table
from .results import Result, Results, read_lines, read_results, write_lines
from .tables import Table

TITLE = "What ELMo brings to spaCy"
ONE_ANSWER = "The F1 of qa is against the one answer of its row; SQuAD takes the best of several."
SAMPLE = (
    "The sentences of the table are of the sample corpus, unless told otherwise, which was written for this project. In"
    " layer 0 all uses of one spelling are equal, and the first is shown."
)
OTHER_PART = "Ours are test scores; those of the paper's table are of its development sets."


class Figure(NamedTuple):
    """A picture in the folder of the report."""

    path: Path
    caption: str

    @property
    def uri(self) -> str:
        """The picture as a data URI, for a page that needs no other file."""
        return f"data:image/png;base64,{base64.b64encode(self.path.read_bytes()).decode()}"


@dataclass
class Section:
    """A heading with its tables, sentences and figures."""

    title: str
    texts: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def markdown(self) -> str:
        """Return the section as Markdown. Its pictures must be in the same folder as the page."""
        parts = [f"## {self.title}", *self.texts, *(table.markdown() for table in self.tables)]
        parts += [f"![{caption}]({path.name})\n\n*{caption}*" for path, caption in self.figures]
        return "\n\n".join(parts)


def sections(
    results: Results, size: Mapping[str, Any], paper: Mapping[str, Any], folder: Path
) -> list[Section]:
    """Return the sections of the report, from all results so far.

    Args:
        size: the section of the size in the plan.
        paper: the results of Peters et al. (2018), from paper.yml; empty for other languages than English.
        folder: folder of the report, which may have pictures and the JSON files of the probes.
    """

    def cited(name: str) -> Table | None:
        return Table(**paper[name]) if name in paper else None

    def figure(name: str, caption: str) -> list[Figure]:
        return [Figure(folder / name, caption)] if (folder / name).is_file() else []

    of_tasks = _section(
        "Tasks", tables.tasks(results), cited("tasks"), *_about_tasks(results, size)
    )
    of_tasks.figures += figure("gains.png", "Errors removed, compared with the baseline")
    nearest = _made(neighbor_table(folder))
    efficiency = _made(tables.shares(results), tables.updates(results))
    parts = [
        of_tasks,
        _section("Which layers", tables.weighting(results), cited("weighting"), OTHER_PART),
        _section("Where ELMo enters", tables.place(results), cited("place"), OTHER_PART),
        Section(
            "Less data, fewer updates",
            [paper["efficiency"].strip()] if efficiency and "efficiency" in paper else [],
            efficiency,
            figure("shares.png", "Scores by the share of the training data; figure 1 of the paper"),
        ),
        Section(
            "Errors in the text",
            tables=_made(tables.noise(results)),
            figures=figure("noise.png", "Scores by the share of the words that have an error"),
        ),
        _section("Word senses", sense_table(folder), cited("senses")),
        _section("Parts of speech", tag_table(folder), cited("tags")),
        Section(
            "A word in its context",
            [SAMPLE] if nearest else [],
            nearest,
        ),
        Section(
            "Learned weights",
            figures=figure("layers.png", "Learned weights of the layers; figure 2 of the paper"),
        ),
        Section("Time", tables=_made(tables.minutes(results))),
    ]
    return [section for section in parts if section.texts or section.tables or section.figures]


def _section(title: str, table: Table | None, cited: Table | None, *texts: str) -> Section:
    if table is None:
        return Section(title)
    return Section(title, texts=[text for text in texts if text], tables=_made(table, cited))


def _made(*optional: Table | None) -> list[Table]:
    return [table for table in optional if table is not None]


def _about_tasks(results: Results, size: Mapping[str, Any]) -> list[str]:
    one_answer = ONE_ANSWER if any(task == "qa" for task, _ in results.sets) else ""
    return [gains(results), rivals(results), text_read(results, size), one_answer]


def write(parts: Sequence[Section], folder: Path, summary: str, title: str = TITLE) -> None:
    """Write the report as Markdown and as HTML.

    Args:
        summary: a sentence on the whole report.
    """
    texts = [f"# {title}", summary, *(section.markdown() for section in parts)]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(Path(__file__).with_name("report.html").read_text("utf8"))
    with atomic_file(folder / "report.md") as file:
        file.write_text("\n\n".join(texts) + "\n", "utf8")
    with atomic_file(folder / "report.html") as file:
        file.write_text(template.render(title=title, summary=summary, sections=parts), "utf8")


def all_results(metrics: Path, planned: Container[Path], earlier: Path) -> dict[Path, Result]:
    """Return the results of the runs by their files. A file may be gone if the last report has its scores.

    Args:
        metrics: the folder metrics/SIZE.
        planned: the files of planned runs. Other files are ignored.
        earlier: `scores.jsonl` of the last report, if there is one. A file of scores replaces its line.

    Raises:
        ValueError: no planned run has a result, or a file was not written by a run.
    """
    results = read_lines(earlier) if earlier.is_file() else []
    if not results or any(metrics.glob("*/*.json")):
        results += read_results(metrics, planned)
    by_file = {result.file(metrics): result for result in results}
    of_plan = {file: result for file, result in by_file.items() if file in planned}
    if not of_plan:
        raise ValueError(f"Neither {metrics} nor {earlier} has scores of a planned run")
    return of_plan


def main() -> None:
    """Parse the arguments, write the report, and print its path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument("size", metavar="SIZE")
    args = parser.parse_args()
    folder = Path("report", args.size)
    try:
        plan = Plan.read(args.plan)
        size = plan.size(args.size)
        runs = plan.runs(args.size)
        planned = {path for run in runs for path in run.metrics.values()}
        scores = all_results(Path("metrics", args.size), planned, folder / "scores.jsonl")
        results = Results(scores.values(), plan.trained_on, plan.names)
        folder.mkdir(parents=True, exist_ok=True)
        write_lines(scores.values(), folder / "scores.jsonl")
        # The paper's data are English.
        paper = srsly.read_yaml("paper.yml") if plan.lang(args.size) == "en" else {}
        title = f"{TITLE}: {size['title']}" if "title" in size else TITLE
        charts = {
            "gains.png": gain_chart(results, paper.get("same_kind", {})),
            "shares.png": share_chart(results),
            "noise.png": noise_chart(results),
        }
        for name, chart in charts.items():
            if chart is None:
                (folder / name).unlink(missing_ok=True)
            else:
                save_figure(chart, folder / name)
        write(sections(results, size, paper, folder), folder, progress(runs, scores), title)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(f"{folder / 'report.md'}, {folder / 'report.html'}")


if __name__ == "__main__":
    main()

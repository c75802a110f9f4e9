"""The report of a size: `report.md` with its pictures, and `report.html` that needs nothing else.

python -m experiments.report full
"""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import jinja2
import srsly

from spacy_elmo.analysis.figures import save_figure

from . import tables
from .probe_tables import sense_table, tag_table
from .results import Results, mean, read_results
from .share_chart import share_chart
from .tables import Table
from .whole_file import whole

TITLE = "What ELMo brings to spaCy"


class Figure(NamedTuple):
    """A picture beside the report."""

    path: Path
    caption: str

    @property
    def uri(self) -> str:
        """The picture itself, for a page that needs no other file."""
        return f"data:image/png;base64,{base64.b64encode(self.path.read_bytes()).decode()}"


@dataclass
class Section:
    """A heading and what stands under it."""

    title: str
    texts: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def markdown(self) -> str:
        """As Markdown; pictures by their names, so they must be in the same folder."""
        parts = [f"## {self.title}", *self.texts, *(table.markdown() for table in self.tables)]
        parts += [f"![{caption}]({path.name})\n\n*{caption}*" for path, caption in self.figures]
        return "\n\n".join(parts)


def sections(results: Results, paper: dict, folder: Path) -> list[Section]:
    """All that is known so far.

    Args:
        paper: the figures of Peters et al. (2018), as in paper.yml.
        folder: of the report; pictures and the probes' JSON are looked for in it.
    """

    def cited(name: str) -> Table:
        return Table(**paper[name])

    found = [
        Section(
            "Tasks",
            texts=[no_gain(results)],
            tables=[tables.tasks(results), cited("tasks")],
        ),
        _section("Which layers", tables.weighting(results), cited("weighting")),
        _section("Where ELMo enters", tables.place(results), cited("place")),
        Section(
            "Less data, fewer updates",
            texts=[paper["efficiency"].strip()],
            tables=[t for t in (tables.shares(results), tables.updates(results)) if t is not None],
        ),
        _section("Word senses", sense_table(folder), cited("senses")),
        _section("Parts of speech", tag_table(folder), cited("tags")),
        Section("Pictures"),
        Section("Time", tables=[tables.minutes(results)]),
    ]
    for section, name, caption in (
        (found[3], "shares.png", "Scores by the share of the training data; figure 1 of the paper"),
        (found[6], "layers.png", "Learned weights of the layers; figure 2 of the paper"),
        (found[6], "neighbors.png", "Uses of a word; cf. table 4 of the paper"),
    ):
        if (folder / name).is_file():
            section.figures.append(Figure(folder / name, caption))
    return [section for section in found if section.texts or section.tables or section.figures]


def _section(title: str, own: Table | None, cited: Table) -> Section:
    return Section(title, tables=[own, cited] if own is not None else [])


def no_gain(results: Results) -> str:
    """Where ELMo does not help, in a sentence."""
    worse = []
    for task, data in results.sets:
        baseline, elmo = (
            results.of(task=task, data=data, variant=name, share=100)
            for name in ("baseline", "elmo")
        )
        if baseline and elmo and mean(elmo) <= mean(baseline):
            worse.append(f"{task}, {data}")
    if not worse:
        return "With ELMo every task scores higher than without."
    return f"ELMo does not help with: {'; '.join(worse)}."


def write(found: Sequence[Section], folder: Path) -> None:
    """Write both forms of the report."""
    texts = [f"# {TITLE}", *(section.markdown() for section in found)]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(Path(__file__).with_name("report.html").read_text("utf8"))
    with whole(folder / "report.md") as file:
        file.write_text("\n\n".join(texts) + "\n", "utf8")
    with whole(folder / "report.html") as file:
        file.write_text(template.render(title=TITLE, sections=found), "utf8")


def main() -> None:
    """Parse, write, and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", metavar="SIZE")
    size = parser.parse_args().size
    folder = Path("report", size)
    try:
        results = Results(read_results(Path("metrics", size)))
        folder.mkdir(parents=True, exist_ok=True)
        if (chart := share_chart(results)) is not None:
            save_figure(chart, folder / "shares.png", title="Less training data")
        write(sections(results, srsly.read_yaml("paper.yml"), folder), folder)
    except (OSError, ValueError, json.JSONDecodeError) as error:
        raise SystemExit(str(error)) from error
    print(f"{folder / 'report.md'}, {folder / 'report.html'}")


if __name__ == "__main__":
    main()

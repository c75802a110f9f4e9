"""Fill the tables of the pages from evidence/scores, as evidence/tables.yml describes them.

python -m scripts.tables

A page has the marks `<!-- table NAME -->` and `<!-- end -->`. The lines between them are written anew. A row of
`evidence/scores/*.jsonl` is one measured run, and nothing in it is computed: `scores` maps metrics to percentages or
other numbers, and the other fields say what was measured, how, and where. The fields of a table in `tables.yml`:

* `of`: names of files in evidence/scores;
* `where`: values (or lists of values) that fields of the runs must have;
* `rows`: the fields whose values stand at the left, `columns`: the field whose values stand at the top ("metric" is
  the name of a score), `heads`: what stands above the left columns;
* `show`: for such a field, the values that are shown, in this order: a list, or a label for each. Without it, all are
  shown, in the order of the runs;
* `digits`: decimal places (1); a number, or one for each metric;
* `deviation`: true adds the standard deviation to a mean;
* `fewer_errors`: [LABEL, WITHOUT, WITH] adds the share of the errors that column WITH lacks beside column WITHOUT;
* `bold`: [COLUMN, OTHER] makes the mean in COLUMN bold if its worst run is better than the best run of OTHER.

A cell is the mean of its runs. It is empty if there are none.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import srsly

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md",
    "docs/**/*.md",
    "evidence/*.md",
    "projects/*/*.md",
    "spacy_elmo/weights/*.md",
)
MARKS = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)

Run = Mapping[str, Any]


def runs(names: Iterable[str]) -> Iterator[Run]:
    """Yield a copy of each run of the files for each of its scores, with the fields `file`, `metric` and `value`."""
    for name in names:
        for run in srsly.read_jsonl(ROOT / "evidence" / "scores" / f"{name}.jsonl"):
            # The runs of the experiments have one score each.
            scores = run["scores"] if "scores" in run else {"score": run["score"]}
            for metric, value in scores.items():
                yield {**run, "file": name, "metric": metric, "value": value}


def cells_of(settings: Mapping[str, Any]) -> dict[tuple[Any, ...], dict[Any, list[float]]]:
    """Return the values of the runs of a table by the fields at the left, then by the field at the top."""
    conditions = {field: list(labels) for field, labels in settings.get("show", {}).items()}
    conditions |= settings.get("where", {})
    cells: dict[tuple[Any, ...], dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs(settings["of"]):
        if all(_fits(run.get(field), wanted) for field, wanted in conditions.items()):
            left = tuple(run[field] for field in settings["rows"])
            cells[left][run[settings.get("columns", "metric")]].append(run["value"])
    return cells


def table(settings: Mapping[str, Any]) -> str:
    """Return a table in Markdown. See the top of this file for its settings."""
    columns, cells = settings.get("columns", "metric"), cells_of(settings)
    show = {
        field: labels if isinstance(labels, Mapping) else dict(zip(labels, labels, strict=True))
        for field, labels in settings.get("show", {}).items()
    }
    tops = list(show.get(columns) or dict.fromkeys(top for row in cells.values() for top in row))
    heads = [show.get(columns, {}).get(top, top) for top in tops]
    extra = settings.get("fewer_errors")
    width = len(settings["rows"])
    lines = [
        settings.get("heads", [""] * width) + heads + ([extra[0]] if extra else []),
        ["---"] * width + ["---:"] * (len(heads) + bool(extra)),
    ]
    places = [
        list(show.get(field) or dict.fromkeys(left[i] for left in cells))
        for i, field in enumerate(settings["rows"])
    ]
    before: tuple[Any, ...] = ()
    for left in sorted(cells, key=lambda left: [*map(list.index, places, left)]):
        row = cells[left]
        # A label that the row above has, too, is left out, but the last one.
        labels = [
            ""
            if left[: i + 1] == before[: i + 1] and i + 1 < width
            else show.get(field, {}).get(value, value)
            for i, (field, value) in enumerate(zip(settings["rows"], left, strict=True))
        ]
        numbers = [_number(row, top, settings) for top in tops]
        if extra:
            numbers.append(_fewer_errors(row, *extra[1:]))
        lines.append([*labels, *numbers])
        before = left
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _fits(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list) else value == wanted


def _number(row: Mapping[Any, list[float]], top: Any, settings: Mapping[str, Any]) -> str:
    if not row.get(top):
        return ""
    digits = settings.get("digits", 1)
    if isinstance(digits, Mapping):
        digits = digits.get(top, 1)
    number = f"{mean(row[top]):,.{digits}f}"
    column, other = settings.get("bold", (None, None))
    is_bold = top == column and row.get(other) and min(row[top]) > max(row[other])
    number = f"**{number}**" if is_bold else number
    has_deviation = settings.get("deviation") and len(row[top]) > 1
    return f"{number} ± {stdev(row[top]):.{digits}f}" if has_deviation else number


def _fewer_errors(row: Mapping[Any, list[float]], without: Any, with_: Any) -> str:
    if not (row.get(without) and row.get(with_)):
        return ""
    errors = 100 - mean(row[without])
    return f"{100 * (mean(row[with_]) - mean(row[without])) / errors:.1f} %"


def page(text: str, tables: Mapping[str, Any]) -> str:
    """Return a page with the present tables."""
    return MARKS.sub(lambda found: f"{found[1]}{table(tables[found[2]])}{found[3]}", text)


def pages() -> Iterator[Path]:
    """Yield the pages that have a table."""
    for pattern in PAGES:
        yield from (
            path for path in sorted(ROOT.glob(pattern)) if MARKS.search(path.read_text("utf8"))
        )


def main() -> None:
    """Write the pages."""
    tables = srsly.read_yaml(ROOT / "evidence" / "tables.yml")
    for path in pages():
        path.write_text(page(path.read_text("utf8"), tables), "utf8")


if __name__ == "__main__":
    main()

"""Charts of the errors that ELMo removes, and of scores by the share of training data and by errors in the text.

The gains of several reports in one picture:

python -m experiments.charts report/gains.png report/base report/la report/grc report/cs report/de
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spacy_elmo.lab.layer_charts import save_chart

from .results import Result, Results, fewer_errors, mean

_PAPER = "ELMo in the paper, on other data of the same kind"
# The name, colour and shape of each variant. Colour-blind readers can tell them apart; marks of the paper are unfilled.
_OURS = {
    "elmo": ("ELMo", "#3b528b", "circle"),
    "elmo_vectors": ("ELMo and static vectors", "#21918c", "triangle-up"),
    "elmo_tuned": ("ELMo, fine-tuned", "#cc79a7", "cross"),
    "vectors": ("static vectors", "#d95f02", "square"),
}
_LABEL_HEIGHT = 18
"""Least height of a row in pixels."""
VARIANT_NAMES = {variant: name for variant, (name, *_) in _OURS.items()}
"""The name of each variant in charts."""
_LOOKS = [*_OURS.values(), (_PAPER, "#000000", "diamond")]


def gain_chart(results: Results, same_kind: Mapping[str, float]) -> Mapping[str, Any] | None:
    """Return a Vega-Lite chart with a row of marks for each set; None if only baselines have results.

    Args:
        same_kind: for each set, such as "ner/wnut17", the percentage that the paper has for the same task.
    """
    rows = []
    for task, data in results.sets:
        found = _gains(results, task, data)
        if found and f"{task}/{data}" in same_kind:
            found[_PAPER] = same_kind[f"{task}/{data}"]
        label = results.label_with_metric(task, data)
        rows += [{"set": label, "model": name, "gain": gain} for name, gain in found.items()]
    return chart_of_gains(rows)


def chart_of_gains(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return a Vega-Lite chart of gains; None if there are none.

    Args:
        rows: each has `set`, `model` (a name of `VARIANT_NAMES` or the name of the paper) and `gain` in percent.
    """
    if not rows:
        return None
    drawn = {row["model"] for row in rows}
    shown, colours, shapes = zip(*(look for look in _LOOKS if look[0] in drawn), strict=True)
    fills = [
        "transparent" if name == _PAPER else of for name, of in zip(shown, colours, strict=True)
    ]
    x = {
        "field": "gain",
        "type": "quantitative",
        "title": "errors removed, %",
    }
    y = {"field": "set", "type": "nominal", "title": None, "sort": None}
    legend = {"title": None, "symbolSize": 80}
    colour, shape, fill = (
        {
            "field": "model",
            "type": "nominal",
            "scale": {"domain": shown, "range": values},
            "legend": legend,
        }
        for values in (colours, shapes, fills)
    )
    nothing = {
        "mark": {"type": "rule", "color": "#555555"},
        "encoding": {"x": {"datum": 0, "type": "quantitative"}},
    }
    marks = {
        "mark": {"type": "point", "size": 80, "opacity": 1},
        "encoding": {
            "x": x,
            "y": {**y, "axis": {"grid": True, "tickBand": "extent", "labelLimit": 320}},
            # Shifted, because equal values would hide each other.
            "yOffset": {"field": "model", "type": "nominal", "sort": shown},
            "color": colour,
            "shape": shape,
            "fill": fill,
        },
    }
    return {
        "title": {
            "text": "Errors removed, compared with hash embeddings only",
            "subtitle": [
                "Errors are 100 minus the test score. Each mark is a mean over seeds; the tables show their spread.",
            ],
        },
        "data": {"values": rows},
        "width": 480,
        "height": {"step": max(8, _LABEL_HEIGHT / len(drawn))},
        "layer": [nothing, marks],
    }


def _gains(results: Results, task: str, data: str) -> dict[str, float]:
    """Return the gain of each model in percent: the mean of its seeds, compared with the mean of all baselines."""
    baseline = results.of(task=task, data=data, variant="baseline", share=100)
    gains = {}
    for variant, name in VARIANT_NAMES.items():
        found = results.of(task=task, data=data, variant=variant, share=100)
        if found and baseline:
            gains[name] = fewer_errors(mean(found), mean(baseline))
    return gains


# The name and colour of each variant, as in `gain_chart`.
_LINES = {
    "baseline": ("hash embeddings", "#888888"),
    "vectors": ("with static vectors", "#d95f02"),
    "elmo": ("with ELMo", "#3b528b"),
    "elmo_vectors": ("with both", "#21918c"),
}


def share_chart(results: Results) -> Mapping[str, Any] | None:
    """Return a Vega-Lite chart of scores against the share of the training data, with a panel for each set.

    It is None if no set has at least three shares.
    """
    drawn = []
    for task, data in results.sets:
        of_set = results.of(task=task, data=data)
        used = {result.share for result in of_set}
        if len(used) > 2:
            seeds = {result.seed for result in of_set if result.share == min(used)}
            drawn += [result for result in of_set if result.seed in seeds]
    x = {
        "scale": {"type": "log", "domain": [1, 100]},
        "title": "training documents, % (log scale)",
    }
    return _chart(results, drawn, "share", x, "Less training data")


def noise_chart(results: Results) -> Mapping[str, Any] | None:
    """Return a Vega-Lite chart of scores against the share of words with errors, with a panel for each set.

    It is None if no run was scored on text with errors.
    """
    noisy = {(result.task, result.data) for result in results.noisy}
    clean = [r for r in results.all if (r.task, r.data) in noisy and r.share == 100]
    x = {"title": "words with an OCR-like error, %"}
    return _chart(results, clean + results.noisy, "noise", x, "Text with errors")


def _chart(
    results: Results, drawn: Iterable[Result], field: str, x: Mapping[str, Any], title: str
) -> Mapping[str, Any] | None:
    by_point: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for result in drawn:
        if result.variant in _LINES:
            panel = results.label_with_metric(result.task, result.data)
            by_point[panel, result.variant, getattr(result, field)].append(result.score)
    if not by_point:
        return None
    rows = [
        {"set": panel, "model": _LINES[variant][0], field: value, "score": statistics.mean(scores)}
        for (panel, variant, value), scores in by_point.items()
    ]
    drawn_variants = {variant for _, variant, _ in by_point}
    names, colours = zip(*(_LINES[name] for name in _LINES if name in drawn_variants), strict=True)
    axis = {"values": sorted({row[field] for row in rows}), "format": "d"}
    panel_spec = {
        "width": 300,
        "height": 240,
        "mark": {"type": "line", "point": {"size": 60}},
        "encoding": {
            "x": {"field": field, "type": "quantitative", "axis": axis, **x},
            "y": {
                "field": "score",
                "type": "quantitative",
                "scale": {"zero": False},
                "title": "test score, %",
            },
            "color": {
                "field": "model",
                "type": "nominal",
                "title": None,
                "scale": {"domain": names, "range": colours},
            },
            "tooltip": [
                {"field": "model"},
                {"field": "score", "type": "quantitative", "format": ".1f"},
            ],
        },
    }
    return {
        "title": {"text": title, "subtitle": "Each point is a mean over seeds."},
        "data": {"values": rows},
        "facet": {"field": "set", "type": "nominal", "title": None},
        "columns": 3,
        "resolve": {"scale": {"y": "independent"}, "axis": {"x": "independent"}},
        "spec": panel_spec,
    }


TASKS = {"ner": "named entities", "tagger": "tags", "textcat": "text categories"}
"""Names of spaCy's components in plain words."""


def read_gains(report: Path) -> list[dict[str, Any]]:
    """Return the gains of a report, from the first table of its page.

    Args:
        report: folder of report.md.

    Returns:
        A row for each set and variant if the variant and the baseline have scores: `set`, with the language
        from the title of the page, `model`, and `gain` in percent.
    """
    page = (report / "report.md").read_text("utf8")
    table = page.partition("| task and data | metric | baseline |")
    language = page.splitlines()[0].partition(": ")[2] or "English"
    head, _, *lines = (table[1] + table[2]).partition("\n\n")[0].splitlines()
    rows = []
    for line in lines:
        cells = dict(zip(_cells(head), _cells(line), strict=True))
        for variant, name in VARIANT_NAMES.items():
            score = cells.get(variant, "-")
            if "-" in (score, cells["baseline"]):
                continue
            task, _, data = cells["task and data"].partition(", ")
            label = f"{language}, {TASKS.get(task, task)}: {data}"
            gain = fewer_errors(_mean(score), _mean(cells["baseline"]))
            rows.append({"set": label, "model": name, "gain": gain})
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
    rows = [row for report in args.reports for row in read_gains(report)]
    save_chart(chart_of_gains(rows), args.picture)


if __name__ == "__main__":
    main()

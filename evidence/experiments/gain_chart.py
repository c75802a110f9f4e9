"""Chart of the share of the baseline's errors that ELMo and its rivals avoid on each data set, and in the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .results import Results, fewer_errors, mean

_PAPER = "ELMo in the paper, on other data of the same kind"
# The name, colour and shape of each variant. Colour-blind readers can tell them apart; marks of the paper are unfilled.
_OURS = {
    "elmo": ("ELMo", "#3b528b", "circle"),
    "elmo_vectors": ("ELMo and static vectors", "#21918c", "triangle-up"),
    "vectors": ("static vectors", "#d95f02", "square"),
    "pretrain": ("spaCy's pretraining", "#888888", "cross"),
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
            share = fewer_errors(mean(found), mean(baseline))
            if share is not None:
                gains[name] = 100 * share
    return gains

"""How many of the baseline's errors ELMo and its rivals do without, set by set, beside what the paper had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .results import METRIC_NAMES, Results, fewer_errors, mean

_PAPER = "ELMo in the paper, on its own data of that kind"
# Legible to the colour-blind; what is not filled is not ours.
_LOOKS = {
    "ELMo": ("#3b528b", "circle"),
    "ELMo and static vectors": ("#21918c", "triangle-up"),
    "static vectors": ("#d95f02", "square"),
    "spaCy's pretraining": ("#888888", "cross"),
    _PAPER: ("#000000", "diamond"),
}
_NAMES = {
    "elmo": "ELMo",
    "elmo_vectors": "ELMo and static vectors",
    "vectors": "static vectors",
    "pretrain": "spaCy's pretraining",
}


def gain_chart(results: Results, same_kind: Mapping[str, float]) -> Mapping[str, Any] | None:
    """A row of marks for each set, in Vega-Lite. None: nothing but baselines is done.

    Args:
        same_kind: of a set, as "ner/wnut17", the percentage in the paper.
    """
    rows = []
    for task, data in results.sets:
        found = _gains(results, task, data)
        if found and f"{task}/{data}" in same_kind:
            found[_PAPER] = same_kind[f"{task}/{data}"]
        label = f"{results.label(task, data)} ({METRIC_NAMES[task]})"
        rows += [{"set": label, "model": name, "gain": gain} for name, gain in found.items()]
    if not rows:
        return None
    shown = [name for name in _LOOKS if any(row["model"] == name for row in rows)]
    looks = [_LOOKS[name] for name in shown]
    x = {
        "field": "gain",
        "type": "quantitative",
        "title": "errors of the baseline that are gone (%)",
    }
    y = {"field": "set", "type": "nominal", "title": None, "sort": None}
    legend = {"title": None, "symbolSize": 80}
    colour, shape = (
        {
            "field": "model",
            "type": "nominal",
            "scale": {"domain": shown, "range": list(values)},
            "legend": legend,
        }
        for values in zip(*looks, strict=True)
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
            # Else equal ones would hide each other.
            "yOffset": {"field": "model", "type": "nominal", "sort": shown},
            "color": colour,
            "shape": shape,
            "fill": {
                **colour,
                "scale": {"domain": shown, "range": [_fill(name) for name in shown]},
            },
        },
    }
    return {
        "title": {
            "text": "What ELMo and its rivals gain over hash embeddings",
            "subtitle": [
                "Errors are 100 minus the test score. Means of the seeds: their number and spread are in the table.",
            ],
        },
        "data": {"values": rows},
        "width": 480,
        "height": {"step": 8},
        "layer": [nothing, marks],
    }


def _gains(results: Results, task: str, data: str) -> dict[str, float]:
    """Percent, by the model's name: means of its seeds, all held against the mean of all baselines."""
    baseline = results.of(task=task, data=data, variant="baseline", share=100)
    gains = {}
    for variant, name in _NAMES.items():
        found = results.of(task=task, data=data, variant=variant, share=100)
        if found and baseline:
            share = fewer_errors(mean(found), mean(baseline))
            if share is not None:
                gains[name] = 100 * share
    return gains


def _fill(name: str) -> str:
    return "transparent" if name == _PAPER else _LOOKS[name][0]

"""Figure 1 of Peters et al. (2018): scores by the part of the training data, with ELMo and without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .results import Results

_NAMES = {"baseline": "without ELMo", "elmo": "with ELMo"}


def share_chart(results: Results) -> Mapping[str, Any] | None:
    """Return a Vega-Lite chart with a panel for each set; None if no run used a part of its data."""
    drawn = [
        pair
        for pair in results.sets
        if {r.share for r in results.of(task=pair[0], data=pair[1])} != {100}
    ]
    rows = [
        {
            "set": results.label_with_metric(result.task, result.data),
            "share": result.share,
            "score": result.score,
            "documents": result.documents,
            "model": _NAMES[result.variant],
        }
        for task, data in drawn
        for result in results.of(task=task, data=data, seed=0)
        if result.variant in _NAMES
    ]
    if not rows:
        return None
    x = {
        "field": "share",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [1, 100]},
        "axis": {"values": sorted({row["share"] for row in rows}), "format": "d"},
        "title": "training documents used (%), logarithmic",
    }
    y = {
        "field": "score",
        "type": "quantitative",
        "scale": {"zero": False},
        "title": "test score (%)",
    }
    colour = {
        "field": "model",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(_NAMES.values()), "range": ["#888888", "#3b528b"]},
    }
    panel = {
        "width": 300,
        "height": 240,
        "mark": {"type": "line", "point": {"size": 60}},
        "encoding": {
            "x": x,
            "y": y,
            "color": colour,
            "tooltip": [
                {"field": "model"},
                {"field": "documents", "type": "quantitative", "format": ","},
                {"field": "score", "type": "quantitative", "format": ".1f"},
            ],
        },
    }
    return {
        "title": {"text": "Less training data", "subtitle": "Each point is one run, seed 0."},
        "data": {"values": rows},
        "facet": {"column": {"field": "set", "type": "nominal", "title": None}},
        "resolve": {"scale": {"y": "independent"}, "axis": {"x": "independent"}},
        "spec": panel,
    }

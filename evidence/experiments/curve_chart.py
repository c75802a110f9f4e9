"""Charts of scores against the share of training data (figure 1 of Peters et al. 2018) and against text errors."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from .results import Result, Results

# The name and colour of each variant, as in `gain_chart`.
_LOOKS = {
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
        if result.variant in _LOOKS:
            panel = results.label_with_metric(result.task, result.data)
            by_point[panel, result.variant, getattr(result, field)].append(result.score)
    if not by_point:
        return None
    rows = [
        {"set": panel, "model": _LOOKS[variant][0], field: value, "score": statistics.mean(scores)}
        for (panel, variant, value), scores in by_point.items()
    ]
    drawn_variants = {variant for _, variant, _ in by_point}
    names, colours = zip(*(_LOOKS[name] for name in _LOOKS if name in drawn_variants), strict=True)
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

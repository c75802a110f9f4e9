"""2-D map of the occurrences of a word, as a chart for a PNG file. Similar occurrences are near each other.
Colors show word senses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..contexts.occurrences import Occurrence
from ..figures import Spec

_SIZE = 300
_COLUMNS = 3
_MARGIN = 1.1
# Palette of Okabe and Ito (2008), which color-blind readers can distinguish. The last color, grey, is for rare senses.
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#555555")
_NO_SENSE, _GREY = "no sense annotated", "#999999"


def map_chart(
    view: dict[str, Any], queries: Sequence[Occurrence], *, title: str, source: str
) -> Spec:
    """Return a Vega-Lite chart of the occurrences of a word, with one 2-D map for each layer.

    Args:
        view: the result of `word_view`. If it contains annotated senses, the points are colored by sense.
        queries: occurrences in the user's own sentences. Each of them is a numbered black circle in the maps.
        title: title of the chart.
        source: description of the text and the vectors, which is shown below the title.
    """
    return {
        "title": {
            "text": title,
            "subtitle": [
                f"Each point is one of the {len(view['sentences']):,} occurrences of the word. The axes are the first"
                " two principal components of the vectors' directions.",
                *(f"Query {n}: {query.excerpt(12)}" for n, query in enumerate(queries, 1)),
                f"Source: {source}",
            ],
        },
        "columns": _COLUMNS,
        "spacing": 24,
        "concat": [_panel(layer, view["senses"]) for layer in view["layers"]],
    }


def _panel(layer: dict[str, Any], senses: dict[str, Any] | None) -> Spec:
    axes = _axes(layer)
    points = [{"x": x, "y": y} for x, y in layer["points"]]
    color: dict[str, Any] = {"value": _COLORS[0]}
    if senses is not None:
        names = [*senses["names"], _NO_SENSE]
        for point, number in zip(points, senses["of"], strict=True):
            point["sense"] = names[-1 if number is None else number]
        if None not in senses["of"]:
            names.pop()
        colors = [*_COLORS[: len(senses["names"])], _GREY][: len(names)]
        color = {
            "field": "sense",
            "type": "nominal",
            "title": "sense (number of occurrences)",
            "scale": {"domain": names, "range": colors},
        }
    mark = {"type": "circle", "stroke": "white", "strokeWidth": 0.5, "opacity": 0.8, "size": 70}
    text = {"type": "text", "color": "white", "fontSize": 12, "fontWeight": "bold"}
    numbered = [{"x": x, "y": y, "query": n} for n, (x, y) in enumerate(layer["queries"], 1)]
    return {
        "title": layer["name"],
        "width": _SIZE,
        "height": _SIZE,
        "layer": [
            {"data": {"values": points}, "mark": mark, "encoding": {**axes, "color": color}},
            {
                "data": {"values": numbered},
                "encoding": axes,
                "layer": [
                    {"mark": {"type": "circle", "color": "black", "opacity": 1, "size": 230}},
                    {"mark": text, "encoding": {"text": {"field": "query"}}},
                ],
            },
        ],
    }


def _axes(layer: dict[str, Any]) -> dict[str, Any]:
    """Return the Vega-Lite definitions of the x and the y axis of a map. The axes have the same scale,
    because distances would otherwise be distorted."""
    drawn = np.array([*layer["points"], *layer["queries"]])
    low, high = drawn.min(axis=0), drawn.max(axis=0)
    reach = _MARGIN * float((high - low).max()) / 2 or 1.0
    return {
        axis: {
            "field": axis,
            "type": "quantitative",
            "scale": {"domain": [middle - reach, middle + reach], "nice": False},
            "title": f"component {number}: {share:.0%} of the variance",
            "axis": {"labels": False, "ticks": False, "grid": False, "domain": False},
        }
        for number, axis, middle, share in zip(
            (1, 2), "xy", ((low + high) / 2).tolist(), layer["shares"], strict=True
        )
    }

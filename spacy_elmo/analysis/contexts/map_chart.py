"""Chart of a word's occurrences: near points are similar uses, colors are senses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..figures import Spec
from .occurrence_map import Plane
from .occurrences import Occurrence

_SIZE = 300
_COLUMNS = 3
_MARGIN = 1.1
# Palette of Okabe and Ito (2008), which color-blind readers can distinguish.
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_GREY, _DARK_GREY = "#999999", "#555555"
_NO_SENSE = "no sense annotated"
_POINTS, _QUERIES = "occurrences", "queries"


def map_chart(
    planes: Sequence[Plane],
    occurrences: Sequence[Occurrence],
    queries: Sequence[Occurrence],
    *,
    title: str,
    source: str,
) -> Spec:
    """Return a chart with a panel for each plane.

    Args:
        occurrences: occurrences in the order of each plane's points; colored if any has a sense.
        queries: queries in the order of each plane's queries; drawn in black, with their numbers.
        source: origin of the text and the vectors.
    """
    senses = _legend(occurrences)
    points = [
        {**_places(number, planes, "points"), "sense": sense} for number, sense in enumerate(senses)
    ]
    numbered = [
        {**_places(number, planes, "queries"), "query": str(number + 1)}
        for number in range(len(queries))
    ]
    return {
        "title": {
            "text": title,
            "subtitle": [
                f"Each point is one occurrence, {len(occurrences):,} in all. Axes: the first two principal components"
                " of the vectors' directions, in one scale per panel.",
                *(
                    f"Query {number}: {query.excerpt(12)}"
                    for number, query in enumerate(queries, 1)
                ),
                f"Source: {source}",
            ],
        },
        # Stored once, though every panel draws them.
        "datasets": {_POINTS: points, _QUERIES: numbered},
        "columns": _COLUMNS,
        "spacing": 24,
        "concat": [
            _panel(number, plane, _color(senses), queries=bool(queries))
            for number, plane in enumerate(planes)
        ],
    }


def _places(number: int, planes: Sequence[Plane], which: str) -> dict[str, Any]:
    """Return x and y of an occurrence in each panel."""
    row: dict[str, Any] = {}
    for panel, plane in enumerate(planes):
        row[f"x{panel}"], row[f"y{panel}"] = getattr(plane, which)[number].tolist()
    return row


def _panel(number: int, plane: Plane, color: dict[str, Any], *, queries: bool) -> Spec:
    place = _axes(number, plane)
    occurrences = {
        "data": {"name": _POINTS},
        "mark": {
            "type": "circle",
            "stroke": "white",
            "strokeWidth": 0.5,
            "opacity": 0.8,
            "size": 70,
        },
        "encoding": {
            **place,
            "color": color,
        },
    }
    query = {
        "data": {"name": _QUERIES},
        "encoding": place,
        "layer": [
            {"mark": {"type": "circle", "color": "black", "opacity": 1, "size": 230}},
            {
                "mark": {"type": "text", "color": "white", "fontSize": 12, "fontWeight": "bold"},
                "encoding": {"text": {"field": "query"}},
            },
        ],
    }
    return {
        "title": plane.view,
        "width": _SIZE,
        "height": _SIZE,
        "layer": [occurrences, query] if queries else [occurrences],
    }


def _axes(number: int, plane: Plane) -> dict[str, Any]:
    """Return both axes, with one scale, so that distances are not distorted."""
    drawn = np.concatenate([plane.points, plane.queries])
    low, high = drawn.min(axis=0), drawn.max(axis=0)
    reach = _MARGIN * float((high - low).max()) / 2 or 1.0
    middle = ((low + high) / 2).tolist()
    return {
        axis: {
            "field": f"{axis}{number}",
            "type": "quantitative",
            "scale": {"domain": [middle[place] - reach, middle[place] + reach], "nice": False},
            "title": f"component {place + 1}: {plane.shares[place]:.0%} of the variance",
            "axis": {"labels": False, "ticks": False, "grid": False, "domain": False},
        }
        for place, axis in enumerate("xy")
    }


def _legend(occurrences: Sequence[Occurrence]) -> list[str]:
    """Return the name of each occurrence's sense in the legend. Rare senses, without a separate color, share one."""
    counts = Counter(o.sense for o in occurrences if o.sense is not None)
    names = {sense: f"{sense} ({n})" for sense, n in counts.most_common(len(_COLORS))}
    other = f"{len(counts) - len(names)} other senses ({_rest(counts)})"
    return [_NO_SENSE if o.sense is None else names.get(o.sense, other) for o in occurrences]


def _rest(counts: Counter[str]) -> int:
    return counts.total() - sum(n for _, n in counts.most_common(len(_COLORS)))


def _color(senses: list[str]) -> dict[str, Any]:
    if set(senses) == {_NO_SENSE}:
        return {"value": _COLORS[0]}
    # The most frequent senses first; entries that are not a single sense last, in grey.
    frequent = [sense for sense, _ in Counter(senses).most_common()]
    vague = [sense for sense in frequent if sense == _NO_SENSE or " other senses " in sense]
    named = [sense for sense in frequent if sense not in vague]
    greys = [_GREY if sense == _NO_SENSE else _DARK_GREY for sense in vague]
    return {
        "field": "sense",
        "type": "nominal",
        "title": "sense (occurrences)",
        "scale": {"domain": [*named, *vague], "range": [*_COLORS[: len(named)], *greys]},
    }

"""The figure of `speed.py`: words per second of all contenders."""

from __future__ import annotations

from pathlib import Path

from spacy_elmo.lab.figures import save_figure

from .rounds import Result

TITLE = "Words per second"


def draw(results: list[Result], path: Path) -> None:
    """Write a figure with a panel for each size and number of threads.

    Args:
        path: a .png or .html file.
    """
    rows = [
        {
            "contender": f"{result.side.kind}, {result.side.precision}",
            "panel": f"{result.size}, threads: {result.threads}",
            "batch": str(result.batch),
            "speed": result.speed,
        }
        for result in results
    ]
    contenders, panels, batches = (
        list(dict.fromkeys(row[name] for row in rows)) for name in ("contender", "panel", "batch")
    )
    batch = {"field": "batch", "type": "nominal", "sort": batches, "title": "sentences in a batch"}
    panel = {
        "width": 300,
        "height": {"step": 24},
        # Points, because the length of a bar means nothing on a logarithmic scale.
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
        "encoding": {
            "x": {
                "field": "speed",
                "type": "quantitative",
                "scale": {"type": "log", "nice": False, "padding": 12},
                "axis": {"title": "words per second", "format": "~s", "tickCount": 6},
            },
            "y": {"field": "contender", "type": "nominal", "sort": contenders, "title": None},
            "color": batch,
            "tooltip": [{"field": name} for name in ("contender", "panel", "batch", "speed")],
        },
    }
    chart = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": TITLE,
        "data": {"values": rows},
        # Not a grid of sizes and threads, because Vega would move panels into cells that have no results.
        "facet": {"field": "panel", "type": "nominal", "sort": panels, "title": None},
        "columns": 2,
        "spec": panel,
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }
    save_figure(chart, path, title=TITLE)

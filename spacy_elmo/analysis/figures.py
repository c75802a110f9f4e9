"""Charts as PNG files, and as HTML pages that need nothing else, no network either."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import jinja2
import vl_convert

from ..files import atomic_write

Spec: TypeAlias = Mapping[str, Any]
"""A chart in Vega-Lite, https://vega.github.io/vega-lite/docs; the `to_dict()` of one that altair has made will do."""

FORMATS = (".html", ".png")
"""Suffixes of what can be written."""

_DOTS_PER_UNIT = 2.0
_STYLE = {
    "font": "sans-serif",
    "title": {"fontSize": 16, "subtitleFontSize": 13, "anchor": "start", "offset": 16},
    "axis": {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 12, "titleFontSize": 13, "labelLimit": 320, "titleLimit": 320},
    "view": {"stroke": "#ddd"},
    "header": {"labelFontSize": 13},
}
# Letters of Unicode that mean what a program lets them mean, so that no text has them.
_MARKS = ("\ue000", "\ue001")


def save_figure(spec: Spec, path: Path, *, title: str) -> None:
    """Write a chart as a picture or as a page, by the suffix of the file. It appears whole or not at all.

    The page shows the chart's tooltips, `marked` words in them highlighted, and can make no request.

    Args:
        title: of the page.

    Raises:
        OSError: the disk is full, or there is no such folder.
        ValueError: the suffix is none of `FORMATS`.
    """
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: a figure is written as {' or '.join(FORMATS)}, by its suffix")
    styled = {**spec, "config": {**_STYLE, **spec.get("config", {})}}
    atomic_write(path, _png(styled) if path.suffix == ".png" else _page(styled, title))


def marked(text: str) -> str:
    """Text that a page highlights where it stands in a tooltip."""
    return text.join(_MARKS)


def _png(spec: dict[str, Any]) -> bytes:
    return vl_convert.vegalite_to_png(spec, scale=_DOTS_PER_UNIT)


def _page(spec: dict[str, Any], title: str) -> bytes:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(Path(__file__).with_name("figure.html").read_text("utf8"))
    return template.render(title=title, libraries=_libraries(), spec=spec, marks=_MARKS).encode(
        "utf8"
    )


@functools.cache
def _libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which takes a second or two to put together."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")

"""Conversion of Vega-Lite charts to PNG files or to self-contained HTML pages, which need no network."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import jinja2
import vl_convert

from ..files import atomic_write

Spec: TypeAlias = Mapping[str, Any]
"""Vega-Lite chart (https://vega.github.io/vega-lite/docs), such as the result of `to_dict()` of an altair chart."""

FIGURE_SUFFIXES = (".html", ".png")
"""Supported suffixes of chart files."""

_DOTS_PER_UNIT = 2.0
_STYLE = {
    "font": "sans-serif",
    "title": {"fontSize": 16, "subtitleFontSize": 13, "anchor": "start", "offset": 16},
    "axis": {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 12, "titleFontSize": 13, "labelLimit": 320, "titleLimit": 320},
    "view": {"stroke": "#ddd"},
    "header": {"labelFontSize": 13},
}


def save_figure(spec: Spec, path: Path, *, title: str) -> None:
    """Write a chart atomically to a file, as a picture (.png) or as a page (.html).

    The page shows the tooltips of the chart, and cannot make network requests.

    Args:
        title: title of the page.

    Raises:
        OSError: the disk is full, or the folder does not exist.
        ValueError: the suffix is not in `FIGURE_SUFFIXES`.
    """
    if path.suffix not in FIGURE_SUFFIXES:
        raise ValueError(f"{path}: the file name must end in {' or '.join(FIGURE_SUFFIXES)}")
    styled = {**spec, "config": {**_STYLE, **spec.get("config", {})}}
    atomic_write(path, _png(styled) if path.suffix == ".png" else _page(styled, title))


def _png(spec: dict[str, Any]) -> bytes:
    return vl_convert.vegalite_to_png(spec, scale=_DOTS_PER_UNIT)


def _page(spec: dict[str, Any], title: str) -> bytes:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(Path(__file__).with_name("figure.html").read_text("utf8"))
    return template.render(title=title, libraries=_libraries(), spec=spec).encode("utf8")


@functools.cache
def _libraries() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as JavaScript code. The first call takes a second or two."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")

"""Conversion of Vega-Lite charts to PNG files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import vl_convert

from ..files import atomic_write

Spec: TypeAlias = Mapping[str, Any]
"""Vega-Lite chart (https://vega.github.io/vega-lite/docs)."""

_DOTS_PER_UNIT = 2.0
_STYLE = {
    "font": "sans-serif",
    "title": {"fontSize": 16, "subtitleFontSize": 13, "anchor": "start", "offset": 16},
    "axis": {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 12, "titleFontSize": 13, "labelLimit": 320, "titleLimit": 320},
    "view": {"stroke": "#ddd"},
    "header": {"labelFontSize": 13},
}


def save_figure(spec: Spec, path: Path) -> None:
    """Write a chart to a PNG file, atomically."""
    styled = {**spec, "config": {**_STYLE, **spec.get("config", {})}}
    atomic_write(path, vl_convert.vegalite_to_png(styled, scale=_DOTS_PER_UNIT))

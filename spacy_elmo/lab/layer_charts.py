"""Layer weights that the components of a trained pipeline have learned, and their chart (Peters et al. 2018, figure
2)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy.language import Language
from thinc.api import Model

from ..files import atomic_write
from ..pipeline.listen.scalar_mix import LayerChoice, is_mix, mix_weights

_WIDTH, _BAR = 420, 18
_DOTS_PER_UNIT = 2.0
_STYLE = {
    "font": "sans-serif",
    "title": {"fontSize": 16, "subtitleFontSize": 13, "anchor": "start", "offset": 16},
    "axis": {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 12, "titleFontSize": 13, "labelLimit": 320, "titleLimit": 320},
    "view": {"stroke": "#ddd"},
    "header": {"labelFontSize": 13},
}


@dataclass(frozen=True)
class LayerWeights:
    """Layer weights of one scalar mix (weighted sum of the layers) of a component."""

    component: str
    """Name of the component that contains the scalar mix."""
    place: str
    """Position in an `ElmoEnhanced`, "input" or "output"; otherwise empty."""
    layers: LayerChoice
    """Option `layers` of the listener: "mix" (learned weights), "average", "top", or the number of a layer."""
    weights: list[float]
    """Weight of each layer, starting with the context-free layer 0. The weights sum to 1."""
    gamma: float
    """Factor that scales the weighted sum."""


def layer_weights(nlp: Language) -> list[LayerWeights]:
    """Return the layer weights of all `ElmoListener` and `ElmoTok2Vec` layers, in the order of the components."""
    mixes = [
        mix
        for name, pipe in nlp.components
        if isinstance(model := getattr(pipe, "model", None), Model)
        for mix in _component_weights(name, model)
    ]
    if not mixes:
        names = ", ".join(nlp.component_names) or "none"
        raise ValueError(
            f"No component of the pipeline uses the layers of a biLM (components: {names}). Use a pipeline that was"
            " trained with spacy-elmo.ElmoListener.v1 or spacy-elmo.ElmoTok2Vec.v1"
        )
    return mixes


def _component_weights(name: str, model: Model) -> Iterator[LayerWeights]:
    places = {
        mix.id: side
        for node in model.walk()
        for side in ("input", "output")  # refs of an `ElmoEnhanced`
        if (branch := node.maybe_get_ref(side)) is not None
        for mix in branch.walk()
        if is_mix(mix)
    }
    mixes = [node for node in model.walk() if is_mix(node)]
    # `walk` yields the output before the input.
    for mix in sorted(mixes, key=lambda mix: places.get(mix.id, "")):
        weights, gamma = mix_weights(mix)
        yield LayerWeights(
            name,
            places.get(mix.id, ""),
            mix.attrs["options"].layers,
            [float(weight) for weight in weights],
            float(gamma),
        )


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Remove the folders that all paths share at their start or end, unless one of several names would be empty. The
    name of a single path is empty."""
    parts = [path.split("/") for path in paths]
    start = len(os.path.commonprefix(parts))
    end = len(os.path.commonprefix([path[start:][::-1] for path in parts]))
    names = ["/".join(path[start : len(path) - end]) for path in parts]
    return names if all(names) or len(paths) == 1 else list(paths)


def layer_chart(mixes: Sequence[tuple[str, LayerWeights]]) -> dict[str, Any]:
    """Return a Vega-Lite chart with a bar for the weight of each layer, and a tick at the weight that each layer has
    if all weights are equal.

    Args:
        mixes: names and layer weights of the scalar mixes, from top to bottom. The names must differ.
    """
    labels = [_label(name, mix) for name, mix in mixes]
    rows = [
        {"mix": label, "layer": str(layer), "weight": weight, "average": 1 / len(mix.weights)}
        for label, (_, mix) in zip(labels, mixes, strict=True)
        for layer, weight in enumerate(mix.weights)
    ]
    weight = {
        "field": "weight",
        "type": "quantitative",
        "title": "layer weight (softmax)",
        "scale": {"domain": [0, 1]},
        "axis": {"grid": False},
    }
    # Color-blind readers can tell these colors apart, also when printed in gray.
    color = {"field": "layer", "type": "nominal", "scale": {"scheme": "viridis"}}
    bars = {"mark": "bar", "encoding": {"x": weight, "color": color}}
    average = {
        "mark": {"type": "tick", "color": "black", "thickness": 1.5},
        "encoding": {"x": {"field": "average", "type": "quantitative"}},
    }
    # Numbers are right of the plot, where there are no bars and ticks.
    numbers = {
        "mark": {"type": "text", "align": "left", "dx": 6},
        "encoding": {
            "x": {"datum": 1},
            "text": {"field": "weight", "type": "quantitative", "format": ".2f"},
        },
    }
    return {
        "title": {
            "text": "Layer weights of the biLM",
            "subtitle": [
                "Layer 0 depends only on the word, the other layers also on its context. Training starts from equal",
                "weights, marked by a tick. \u03b3, next to each name, scales the whole mix.",
            ],
        },
        "data": {"values": rows},
        "facet": {
            "row": {
                "field": "mix",
                "type": "nominal",
                "title": None,
                "sort": labels,
                "header": {"labelAngle": 0, "labelAlign": "left", "labelLimit": 400},
            }
        },
        "spacing": 12,
        "spec": {
            "width": _WIDTH,
            "height": {"step": _BAR},
            "encoding": {"y": {"field": "layer", "type": "nominal", "axis": None}},
            "layer": [bars, average, numbers],
        },
    }


def save_chart(chart: Mapping[str, Any], path: Path) -> None:
    """Write a Vega-Lite chart (https://vega.github.io/vega-lite/docs) to a PNG file, atomically."""
    import vl_convert

    styled = {**chart, "config": {**_STYLE, **chart.get("config", {})}}
    atomic_write(path, vl_convert.vegalite_to_png(styled, scale=_DOTS_PER_UNIT))


def _label(name: str, mix: LayerWeights) -> str:
    note = "" if mix.layers == "mix" else f", layers = {mix.layers}: not learned"
    return f"{name} (\u03b3 {mix.gamma:.2f}{note})"

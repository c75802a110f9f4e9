"""Chart of the layer weights that components have learned, similar to figure 2 of Peters et al. (2018)."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures import Spec
from .layer_weights import LayerWeights

_WIDTH, _BAR = 420, 18


def layer_chart(mixes: Sequence[tuple[str, LayerWeights]]) -> Spec:
    """Return a Vega-Lite chart of scalar mixes (weighted averages of the layers): a bar for the weight of
    each layer, and a tick at the weight that each layer has if all weights are equal.

    Args:
        mixes: names and layer weights of the scalar mixes, from top to bottom. The names must differ.
    """
    names = [_label(name, mix) for name, mix in mixes]
    rows = [
        {
            "mix": name,
            "layer": str(layer),
            "weight": weight,
            "average": 1 / len(mix.weights),
            "gamma": mix.gamma,
        }
        for name, (_, mix) in zip(names, mixes, strict=True)
        for layer, weight in enumerate(mix.weights)
    ]
    weight = {
        "field": "weight",
        "type": "quantitative",
        "title": "layer weight (softmax)",
        "scale": {"domain": [0, 1]},
        "axis": {"grid": False},
    }
    color = {
        "field": "layer",
        "type": "nominal",
        "title": "layer",
        # Color-blind readers can tell these colors apart, also when printed in gray.
        "scale": {"scheme": "viridis"},
    }
    bars = {"mark": "bar", "encoding": {"x": weight, "color": color, "tooltip": _TOOLTIP}}
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
                "sort": names,
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


_TOOLTIP = [
    {"field": "mix", "title": "component"},
    {"field": "layer"},
    {"field": "weight", "type": "quantitative", "format": ".3f"},
    {"field": "gamma", "type": "quantitative", "title": "\u03b3", "format": ".3f"},
]


def _label(name: str, mix: LayerWeights) -> str:
    note = "" if mix.layers == "mix" else f", layers = {mix.layers}: not learned"
    return f"{name} (\u03b3 {mix.gamma:.2f}{note})"

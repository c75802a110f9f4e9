"""`python -m spacy elmo layers`: show the layer weights that trained pipelines have learned."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from spacy.cli._util import import_code

from .arguments import CodeOption
from .output import check_out, msg, write_json


def layers_cli(
    pipelines: Annotated[
        list[str],
        typer.Argument(metavar="PIPELINE...", help="Trained pipelines: folders or package names"),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write: chart (.png) or data (.json)")
    ] = None,
    code: CodeOption = None,
) -> None:
    """Show the layer weights that trained pipelines have learned.

    Each listener computes a weighted sum of the layers of the biLM. The layer weights of a listener sum to 1.
    Each listener also has a factor γ, which scales the weighted sum. Figure 2 of Peters et al. (2018) shows
    such layer weights.

    Layer 0 depends only on the word, not on its context.
    """
    import_code(code)
    check_out(out, ".png", ".json")
    from ..lab.layer_charts import distinct_names, layer_chart, layer_weights, save_chart
    from ..lab.pipelines import saved_pipeline

    mixes = [
        (name, mix)
        for name, pipeline in zip(distinct_names(pipelines), pipelines, strict=True)
        for mix in layer_weights(saved_pipeline(pipeline))
    ]
    named = [(" ".join(filter(None, (name, mix.component, mix.place))), mix) for name, mix in mixes]
    n_layers = max(len(mix.weights) for _, mix in mixes)
    rows = [
        [name, mix.layers, *(f"{value:.3f}" for value in (mix.gamma, *mix.weights))]
        for name, mix in named
    ]
    msg.table(
        [row + [""] * (3 + n_layers - len(row)) for row in rows],
        header=("Component", "Layers", "Gamma", *(f"Layer {layer}" for layer in range(n_layers))),
        aligns=["l", "l"] + ["r"] * (1 + n_layers),
    )
    if out is not None and out.suffix == ".png":
        save_chart(layer_chart(named), out)
        msg.good(f"Saved: {out}")
    else:
        write_json(out, [{"pipeline": name, **asdict(mix)} for name, mix in mixes])

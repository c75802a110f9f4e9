"""`python -m spacy elmo layers`: show the layer weights that trained pipelines have learned."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from spacy.cli._util import import_code
from wasabi import msg

from .arguments import CodeOption
from .errors import report_errors
from .output_files import check_suffix, write_json


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
    with report_errors():
        import_code(code)
        check_suffix(out, ".png", ".json")
        from ..lab.corpora.pipelines import saved_pipeline
        from ..lab.layer_charts import distinct_names, layer_chart, layer_weights

        if out is not None and out.suffix == ".png":
            from ..lab.figures import save_figure
        mixes = [
            (name, mix)
            for name, pipeline in zip(distinct_names(pipelines), pipelines, strict=True)
            for mix in layer_weights(saved_pipeline(pipeline))
        ]
        named = [
            (" ".join(part for part in (name, mix.component, mix.place) if part), mix)
            for name, mix in mixes
        ]
        if out is not None and out.suffix == ".png":
            save_figure(layer_chart(named), out)
        elif out is not None:
            write_json(out, [{"pipeline": name, **asdict(mix)} for name, mix in mixes])
    n_layers = max(len(mix.weights) for _, mix in named)
    header = ("Component", "Layers", "Gamma", *(f"Layer {layer}" for layer in range(n_layers)))
    rows = []
    for name, mix in named:
        weights = [f"{weight:.3f}" for weight in mix.weights]
        rows.append(
            (name, mix.layers, f"{mix.gamma:.3f}", *weights, *[""] * (n_layers - len(weights)))
        )
    msg.table(
        rows, header=header, divider=True, aligns=["l", "l"] + ["r"] * (1 + n_layers), max_col=80
    )
    if out is not None:
        msg.good(f"Saved: {out}")

"""`python -m spacy elmo layers`: show the layer weights that trained pipelines have learned."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from spacy.cli._util import import_code
from wasabi import msg

from .arguments import CodeOption, FigureFilesOption, QuietOption
from .errors import report_errors
from .output_files import check_figure_files, write_json
from .progress import progress_bar

# Not the letter γ, which the encoding of a redirected output may lack.
_HEADER = ("Component", "Layers", "Gamma")


def layers_cli(
    pipelines: Annotated[
        list[str],
        typer.Argument(metavar="PIPELINE...", help="Trained pipelines: folders or package names"),
    ],
    out: FigureFilesOption = None,
    quiet: QuietOption = False,
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
        files = check_figure_files(out)
        from ..lab.corpora.pipelines import saved_pipeline
        from ..lab.layers.layer_weights import distinct_names, layer_weights

        with progress_bar("pipelines", total=len(pipelines), quiet=quiet) as bar:
            mixes = []
            for name, pipeline in zip(distinct_names(pipelines), pipelines, strict=True):
                mixes += [(name, mix) for mix in layer_weights(saved_pipeline(pipeline))]
                bar.update()
        named = [
            (" ".join(part for part in (name, mix.component, mix.place) if part), mix)
            for name, mix in mixes
        ]
        for path in files:
            if path.suffix == ".json":
                write_json(path, [{"pipeline": n, **asdict(mix)} for n, mix in mixes])
                continue
            from ..lab.figures import save_figure
            from ..lab.layers.layer_chart import layer_chart

            save_figure(layer_chart(named), path, title="Layer weights of the biLM")
    n_layers = max(len(mix.weights) for _, mix in named)
    header = (*_HEADER, *(f"Layer {layer}" for layer in range(n_layers)))
    rows = []
    for name, mix in named:
        weights = [f"{weight:.3f}" for weight in mix.weights]
        rows.append(
            (name, mix.layers, f"{mix.gamma:.3f}", *weights, *[""] * (n_layers - len(weights)))
        )
    msg.table(
        rows, header=header, divider=True, aligns=["l", "l"] + ["r"] * (1 + n_layers), max_col=80
    )
    for path in files:
        msg.good(f"Saved: {path}")

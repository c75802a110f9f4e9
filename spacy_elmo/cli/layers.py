"""`python -m spacy elmo layers`: which layers of its biLM a trained pipeline reads."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import srsly
import typer
from spacy.cli._util import import_code
from wasabi import msg

from ..files import atomic_file
from .corpus_arguments import CodeOption
from .errors import one_message
from .figure_files import OutOption, check_figure_files

_HEADER = ("Read by", "Layers", "γ")


def layers_cli(
    pipelines: Annotated[
        list[str],
        typer.Argument(metavar="PIPELINE...", help="Trained pipelines: folders or package names"),
    ],
    out: OutOption = None,
    code: CodeOption = None,
) -> None:
    """The weight of each layer of the biLM in every listener of trained pipelines, as figure 2 of Peters et al. (2018).

    Layer 0 knows the word alone. The weights are softmax(s) and sum to 1; γ scales the mix.
    """
    with one_message():
        import_code(code)
        files = check_figure_files(out)
        import spacy

        from ..analysis.layers.layer_weights import distinct_names, layer_weights

        mixes = [
            (name, mix)
            for name, pipeline in zip(distinct_names(pipelines), pipelines, strict=True)
            for mix in layer_weights(spacy.load(pipeline))
        ]
        named = [
            (" ".join(part for part in (name, mix.component, mix.place) if part), mix)
            for name, mix in mixes
        ]
        for path in files:
            if path.suffix == ".json":
                with atomic_file(path) as partial:
                    srsly.write_json(partial, [{"pipeline": n, **asdict(mix)} for n, mix in mixes])
                continue
            from ..analysis.figures import save_figure
            from ..analysis.layers.layer_chart import layer_chart

            save_figure(layer_chart(named), path, title="Layers of the biLM that are read")
    most = max(len(mix.weights) for _, mix in named)
    header = (*_HEADER, *(f"Layer {layer}" for layer in range(most)))
    rows = []
    for name, mix in named:
        weights = [f"{weight:.3f}" for weight in mix.weights]
        rows.append((name, mix.layers, f"{mix.gamma:.3f}", *weights, *[""] * (most - len(weights))))
    msg.table(rows, header=header, divider=True, aligns=["l", "l"] + ["r"] * (1 + most), max_col=80)
    for path in files:
        msg.good(f"Saved: {path}")

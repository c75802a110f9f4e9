"""`python -m spacy elmo init-config`: a pipeline config for a weights file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..files import atomic_file
from .arguments import WeightsArgument
from .errors import one_message
from .output_files import check_output_file
from .terminal import printable


def init_config_cli(
    source: WeightsArgument,
    config_path: Annotated[
        Path, typer.Argument(metavar="CFG", help="Config file to write, or - for standard output")
    ] = Path("-"),
    lang: Annotated[
        str | None, typer.Option(help="Language, if it is not that of the weights' card")
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite CFG")] = False,
) -> None:
    """Write the config of a pipeline with these weights.

    The config is complete, and elmo is the only component.

    spacy assemble CFG DIR makes the pipeline, with the weights, and spacy package DIR OUT a package of it. To train a
    component on the weights, start from one of the repository's configs/ instead:
    spacy train configs/ner_elmo.cfg --components.elmo.weights WEIGHTS
    """
    with one_message():
        if str(config_path) != "-":
            check_output_file(config_path, "CFG", force=force)
        from ..corpora.blank import blank_pipeline

        nlp, warnings = blank_pipeline(source, lang)
        # Warnings go to standard error, because standard output may be the config.
        for warning in warnings:
            typer.echo(f"Warning: {printable(warning)}", err=True)
        if str(config_path) == "-":
            typer.echo(nlp.config.to_str())
        else:
            with atomic_file(config_path) as partial:
                nlp.config.to_disk(partial)
            Printer().good(f"Config: {config_path}")

"""`python -m spacy elmo init-config`: a pipeline config for a weights file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..files import atomic_file
from .errors import one_message
from .out_file import check_out_file


def init_config_cli(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="Weights file (.safetensors), or bundled name")
    ],
    config_path: Annotated[
        Path, typer.Argument(metavar="CFG", help="Config file to write; -: standard output")
    ] = Path("-"),
    lang: Annotated[
        str | None, typer.Option(help="Language, if the weights do not say it or another is wanted")
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite CFG")] = False,
) -> None:
    """Write the config of a pipeline that is an elmo with these weights, every setting shown.

    spacy assemble CFG DIR makes the pipeline, which holds the weights, and spacy package DIR OUT a package of it. To
    train a component on the weights, start from one of the repository's configs/ instead:
    spacy train configs/ner_elmo.cfg --components.elmo.weights FILE
    """
    with one_message():
        if str(config_path) != "-":
            check_out_file(config_path, "CFG", force=force)
        from ..corpora.blank import blank_pipeline

        nlp, remarks = blank_pipeline(source, lang)
        # Messages have a place of their own, since standard output may be the config.
        for remark in remarks:
            typer.echo(f"Warning: {remark}", err=True)
        if str(config_path) == "-":
            typer.echo(nlp.config.to_str())
        else:
            with atomic_file(config_path) as partial:
                nlp.config.to_disk(partial)
            Printer().good(f"Config: {config_path}")

"""`python -m spacy elmo download`: list public models, and download them to the cache."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer
from wasabi import msg

from .arguments import QuietOption
from .errors import report_errors
from .terminal import file_size


def download_cli(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of a model in the list")
    ] = None,
    lang: Annotated[
        str | None,
        typer.Option("--lang", help="Language code: list only the models of this language"),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """List public models, or download one.

    Without NAME, the command lists the public models that it knows. With NAME, the command downloads a model
    to the user's cache, or to $SPACY_ELMO_CACHE if it is set, and shows the command that converts the model.
    A file that is already there is not downloaded again.
    """
    with report_errors():
        from ..converters.download import cache_folder, fetch, find_model, sha256_of

        if name is None:
            _show_models(lang)
            return
        model = find_model(name)
        msg.info(f"{model.about}. Licence: {model.licence} ({model.source})")
        source = folder = cache_folder() / name
        for url, sha256 in model.files.items():
            path = fetch(url, sha256, folder, progress=sys.stderr.isatty() and not quiet)
            typer.echo(f"{path} ({file_size(path.stat().st_size)})\n  SHA-256 {sha256_of(path)}")
            if sha256 is None:
                msg.warn(f"No published checksum of {path.name} is known, so it was not verified")
            source = path if len(model.files) == 1 else folder
        command = [
            "python",
            "-m",
            "spacy",
            "elmo",
            "convert",
            model.format,
            str(source),
            "OUT_FILE",
        ]
        command += ["--lang", model.languages[0]] if model.languages else []
        msg.good("Downloaded. Convert the model with this command:")
        typer.echo(shlex.join(command))


def _show_models(lang: str | None) -> None:
    """Print the public models (of the language `lang`)."""
    from ..converters.download import known_models

    rows = [
        (
            model.name,
            f"{model.parameters / 1e6:.1f}M" if model.parameters else "",
            model.about,
            model.licence,
        )
        for model in known_models().values()
        if lang is None or lang in model.languages
    ]
    if not rows:
        raise ValueError(
            f"There is no public model for --lang {lang}. Leave out --lang to list all models"
        )
    msg.table(rows, header=("Name", "Size", "About", "Licence"))
    msg.info("The URLs and licences were copied from the authors' pages and were not verified")

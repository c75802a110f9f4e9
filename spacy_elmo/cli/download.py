"""`python -m spacy elmo download`: public models into the cache."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from .errors import one_message

if TYPE_CHECKING:
    from ..catalogue.models import Model, RemoteFile


def download_cli(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Model of the catalogue, or URL of a file"),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", help="Folder to use instead of the cache (SPACY_ELMO_CACHE)"),
    ] = None,
    sha256: Annotated[
        str | None, typer.Option(help="Expected checksum of the file at a URL")
    ] = None,
) -> None:
    """Download a public model, once, and show the command that converts it. Without NAME, list the known models."""
    with one_message():
        from ..catalogue.download import cache_folder, folder_of
        from ..catalogue.models import RemoteFile, find_model, known_models

        models = known_models()
        if name is None:
            _list(models)
            return
        if "://" in name:
            _fetch(
                [RemoteFile(name, sha256)], (folder or cache_folder()) / folder_of(name), ["auto"]
            )
            return
        model = find_model(name, models)
        if sha256 is not None:
            raise ValueError(
                f"--sha256 is for a URL; {name} is a model of {len(model.files)} files"
            )
        msg.info(f"{model.about}. Licence: {model.licence} ({model.source})")
        languages = ["--lang", model.languages[0]] if len(model.languages) == 1 else []
        _fetch(model.files, (folder or cache_folder()) / name, [model.format, *languages])


def _list(models: Mapping[str, Model]) -> None:
    rows = [
        (
            model.name,
            " ".join(model.languages),
            model.format,
            f"{model.parameters / 1e6:.1f}M" if model.parameters else "",
            model.licence,
            model.about,
        )
        for model in models.values()
    ]
    header = ("Name", "Language", "Format", "Size", "Licence", "About")
    msg.table(rows, header=header, divider=True, max_col=60)
    msg.info(
        "URLs and licences are those of the authors, and are not verified. Any other model can be downloaded by its"
        " URL: download https://host/model.zip"
    )


def _fetch(files: Sequence[RemoteFile], folder: Path, conversion: list[str]) -> None:
    from ..catalogue.download import fetch, sha256_of

    paths = []
    for file in files:
        paths.append(fetch(file, folder, progress=sys.stderr.isatty()))
        size = paths[-1].stat().st_size
        status = "as expected" if file.sha256 else "no checksum is known to compare it with"
        typer.echo(f"{paths[-1]} ({size / 1e6:,.1f} MB)\n  sha256 {sha256_of(paths[-1])}, {status}")
    source = folder if len(paths) > 1 else paths[0]
    format, *options = conversion
    command = f"python -m spacy elmo convert {format}".split()
    msg.good("Convert it with:")
    typer.echo(shlex.join([*command, str(source), "OUT_FILE", *options]))

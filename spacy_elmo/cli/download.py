"""`python -m spacy elmo download`: a public model into the cache."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from .errors import one_message

if TYPE_CHECKING:
    from ..catalogue.models import PublicModel, RemoteFile


def download_cli(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Model of the catalogue, or the address of a file"),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Folder in place of the cache (SPACY_ELMO_CACHE)")
    ] = None,
    sha256: Annotated[
        str | None, typer.Option(help="Checksum that the file at an address must have")
    ] = None,
) -> None:
    """Download a public model, once, and say how to convert it. Without NAME: list those that are known."""
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
                f"--sha256 is for an address; {name} is a model of {len(model.files)} files"
            )
        msg.info(f"{model.about}. Licence: {model.licence} ({model.source})")
        languages = ["--lang", model.languages[0]] if len(model.languages) == 1 else []
        _fetch(model.files, (folder or cache_folder()) / name, [model.format, *languages])


def _list(models: Mapping[str, PublicModel]) -> None:
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
        "Addresses and licences as their authors give them; nobody here has fetched the files. Any other model is"
        " downloaded by its address: download https://host/model.zip"
    )


def _fetch(files: list[RemoteFile] | tuple[RemoteFile, ...], folder: Path, how: list[str]) -> None:
    from ..catalogue.download import fetch, sha256_of

    paths = []
    for file in files:
        paths.append(fetch(file, folder, progress=sys.stderr.isatty()))
        size = paths[-1].stat().st_size
        known = "as it should be" if file.sha256 else "which nobody has verified"
        typer.echo(f"{paths[-1]} ({size / 1e6:,.1f} MB)\n  sha256 {sha256_of(paths[-1])}, {known}")
    source = folder if len(paths) > 1 else paths[0]
    format, *options = how
    command = [
        "python",
        "-m",
        "spacy",
        "elmo",
        "convert",
        format,
        str(source),
        "OUT_FILE",
        *options,
    ]
    msg.good("Convert it next:")
    typer.echo(shlex.join(command))

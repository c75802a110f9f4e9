"""`python -m spacy elmo download`: list public models, and download them to the cache."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from .arguments import QuietOption
from .errors import report_errors
from .terminal import file_size

if TYPE_CHECKING:
    from ..converters.models import PublicModel, RemoteFile


def download_cli(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of a model in the list, or URL of a file"),
    ] = None,
    lang: Annotated[
        str | None,
        typer.Option("--lang", help="Language code: list only the models of this language"),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            help="Folder to download to. Default: $SPACY_ELMO_CACHE if it is set, otherwise the user's cache",
        ),
    ] = None,
    sha256: Annotated[
        str | None, typer.Option(help="Expected SHA-256 of the file, if NAME is a URL")
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """List public models, or download one.

    Without NAME, the command lists the public models that it knows. With NAME, the command downloads a model
    to the cache, and shows the command that converts the model. A file that is already in the cache is not
    downloaded again.
    """
    with report_errors():
        from ..converters.download import cache_folder, folder_of
        from ..converters.models import RemoteFile, find_model, known_models

        models = known_models()
        if name is None:
            _show_models(models.values(), lang)
            return
        if lang is not None:
            raise ValueError("--lang filters the list of models, so it cannot be used with NAME")
        if "://" in name:
            target = (folder or cache_folder()) / folder_of(name)
            _fetch([RemoteFile(name, sha256)], target, ["auto"], quiet=quiet)
            return
        model = find_model(name, models)
        if sha256 is not None:
            raise ValueError(
                f"--sha256 can only be used with the URL of a file, but {name} is the name of a listed model"
            )
        msg.info(f"{model.about}. Licence: {model.licence} ({model.source})")
        languages = ["--lang", model.languages[0]] if len(model.languages) == 1 else []
        conversion = [model.format, *languages]
        _fetch(model.files, (folder or cache_folder()) / name, conversion, quiet=quiet)


def _show_models(models: Iterable[PublicModel], lang: str | None) -> None:
    """Print the public models (of the language `lang`), in one table per licence. Models that differ only in
    the language are printed as one line."""
    listed = [model for model in models if lang is None or lang in model.languages]
    if not listed:
        raise ValueError(
            f"There is no public model for --lang {lang}. Leave out --lang to list all models"
        )
    by_licence: dict[str, dict[tuple[str, ...], list[PublicModel]]] = {}
    for model in listed:
        name = model.name if lang else _name_pattern(model)
        size = f"{model.parameters / 1e6:.1f}M" if model.parameters else ""
        row = (name, size, model.about)
        by_licence.setdefault(model.licence, {}).setdefault(row, []).append(model)
    header = ("Name", "Lang", "Size", "About")
    for licence, rows in by_licence.items():
        msg.divider(f"Licence: {licence}", char="-")
        cells = [(name, _languages(similar), *rest) for (name, *rest), similar in rows.items()]
        msg.table(cells, header=header, widths=(22, 4, 5, 40), aligns=("l", "l", "r", "l"))
        for (name, *_), similar in rows.items():
            if len(similar) > 1:
                codes = " ".join(code for model in similar for code in model.languages)
                typer.echo(textwrap.fill(f"{name}: {codes}", 98, subsequent_indent="    "))
    msg.info(
        "The URLs and licences were copied from the authors' pages and were not verified. To download a model that is"
        " not listed, give its URL: python -m spacy elmo download https://host/model.zip"
    )


def _name_pattern(model: PublicModel) -> str:
    """Return the name of a model. A language code at the end of the name is replaced by "CODE", as in
    many-langs-CODE."""
    (*first, last) = model.name.split("-")
    return "-".join([*first, "CODE"]) if first and [last] == [*model.languages] else model.name


def _languages(models: list[PublicModel]) -> str:
    return str(len(models)) if len(models) > 1 else " ".join(models[0].languages)


def _fetch(
    files: Sequence[RemoteFile], folder: Path, conversion: list[str], *, quiet: bool
) -> None:
    from ..converters.download import fetch, first_checksum, sha256_of

    paths = []
    for file in files:
        is_first = first_checksum(folder / file.name) is None
        paths.append(fetch(file, folder, progress=sys.stderr.isatty() and not quiet))
        size = paths[-1].stat().st_size
        status = "as expected" if file.sha256 else "same as at the first download"
        if is_first and not file.sha256:
            status = "recorded, to check later downloads"
            msg.warn(
                f"No published checksum of {file.name} is known, so this download could not be verified"
            )
        typer.echo(f"{paths[-1]} ({file_size(size)})\n  SHA-256 {sha256_of(paths[-1])}, {status}")
    source = folder if len(paths) > 1 else paths[0]
    format, *options = conversion
    command = f"python -m spacy elmo convert {format}".split()
    msg.good("Downloaded. Convert the model with this command:")
    typer.echo(shlex.join([*command, str(source), "OUT_FILE", *options]))

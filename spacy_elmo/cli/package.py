"""`python -m spacy elmo package`: create a Python package from a weights file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from .arguments import LanguageOption, WeightsArgument
from .errors import report_errors
from .terminal import file_size


def package_cli(
    source: WeightsArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT_DIR", help="Folder in which to create the package")
    ],
    name: Annotated[
        str,
        typer.Option(
            "--name",
            "-n",
            help="Name by which users load the weights. The name must end with the version of the model, for example"
            " la_elmo_mini_v1",
        ),
    ],
    version: Annotated[
        str | None,
        typer.Option(
            "--version",
            "-v",
            help="Version of the package. Default: the version in NAME, such as 1.0.0 if NAME ends with _v1",
        ),
    ] = None,
    lang: LanguageOption = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence", help="Licence of the package. Default: the licence of the weights"
        ),
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(
            "--card",
            help="JSON file with fields to add to the model card, such as licence, author and sources",
        ),
    ] = None,
    head: Annotated[
        bool,
        typer.Option(
            "--head",
            help="Also write NAME_with_head.safetensors: weights and softmax, for further training",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Overwrite an earlier package")
    ] = False,
) -> None:
    """Create a Python package from a weights file.

    After you have installed the package with pip, elmo loads the weights by their name: weights = "NAME".
    """
    from ..bilm.weights import Weights
    from ..files import read_json_object
    from ..lab.package import head_file, write_package
    from ..weight_names import find_weights

    with report_errors():
        weights = Weights.load(find_weights(source))
        if card is not None:
            weights.card |= read_json_object(card)
        for field, value in (("language", lang), ("licence", licence)):
            if value is not None:
                weights.card[field] = value
        folder = write_package(weights, name, out, version=version, head=head, force=force)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    msg.good(f"{folder}: {file_size(size)}")
    msg.text(f"Install the package: python -m pip install {folder}")
    if head:
        with_head = head_file(name, out)
        msg.good(f"{with_head}: {file_size(with_head.stat().st_size)}")
        msg.text(
            f"Train the weights further: python -m spacy elmo pretrain CONFIG OUT --init {with_head}"
        )

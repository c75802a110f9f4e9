"""`python -m spacy elmo package`: create a Python package from a weights file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import ForceOption, LanguageOption, WeightsArgument
from .output import msg, show_command, show_file


def package_cli(
    source: WeightsArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT_DIR", help="Folder in which to create the package")
    ],
    name: Annotated[
        str, typer.Option("--name", "-n", help="Name and version of the weights: la_elmo_mini_v1")
    ],
    lang: LanguageOption = None,
    licence: Annotated[
        str | None, typer.Option("--licence", help="Licence. Default: that of the weights")
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(help="JSON file with fields for the model card, such as author and sources"),
    ] = None,
    head: Annotated[
        bool,
        typer.Option("--head", help="Also write NAME_with_head.safetensors, for further training"),
    ] = False,
    force: ForceOption = False,
) -> None:
    """Create a Python package from a weights file.

    After you have installed the package with pip, elmo loads the weights by their name: weights = "NAME".
    """
    from ..bilm.weights import Weights
    from ..files import read_json_object
    from ..lab.package import head_file, write_package
    from ..weight_names import find_weights

    weights = Weights.load(find_weights(source))
    if card is not None:
        weights.card |= read_json_object(card)
    given = {"language": lang, "licence": licence}
    weights.card |= {field: value for field, value in given.items() if value is not None}
    folder = write_package(weights, name, out, head=head, force=force)
    msg.good(f"Package: {folder}. Install it:")
    typer.echo(f"  python -m pip install {folder}")
    if head:
        show_file(head_file(name, out))
        msg.info("Train the weights further:")
        show_command("elmo", "pretrain", "CONFIG", "OUT", "--init", head_file(name, out))

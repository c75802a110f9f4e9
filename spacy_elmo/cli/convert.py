"""`python -m spacy elmo convert`: foreign weights become a weights file of ours."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from .errors import one_message

convert_cli = typer.Typer(
    name="convert",
    help="Convert the weights of another program to a weights file (.safetensors).",
    no_args_is_help=True,
)


class Precision(str, Enum):
    """Types of the stored tensors."""

    float32 = "float32"
    float16 = "float16"


@convert_cli.callback()
def _formats() -> None:
    # Without a callback, typer would drop the format's name from the command while there is only one.
    pass


@convert_cli.command("bilm-hdf5")
def bilm_hdf5_cli(
    folder: Annotated[
        Path, typer.Argument(metavar="IN", help="Folder with options (.json) and weights (.hdf5)")
    ],
    out_file: Annotated[
        Path, typer.Argument(metavar="OUT_FILE", help="Weights file to write (.safetensors)")
    ],
    options: Annotated[
        Path | None, typer.Option(help="The options file, if IN has several")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="The weights file, if IN has several")
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="For word input: the table's words, one a line")
    ] = None,
    dtype: Annotated[
        Precision, typer.Option(help="Type of the stored tensors")
    ] = Precision.float32,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite OUT_FILE")] = False,
) -> None:
    """Convert a model of bilm-tf or AllenNLP: options.json and HDF5 weights."""
    with one_message():
        _check_out_file(out_file, force)
        import torch

        from spacy_elmo.convert.bilm_hdf5 import convert

        conversion = convert(
            folder,
            options=options,
            weights=weights,
            vocabulary=vocabulary,
            dtype=getattr(torch, dtype.value),
        )
        conversion.weights.write(out_file)
    result = conversion.weights
    for path in conversion.files:
        msg.info(f"Read {path}")
    for note in conversion.notes:
        msg.info(note)
    msg.table(result.config.to_dict())
    size = out_file.stat().st_size
    msg.good(f"{out_file}: {len(result.tensors)} tensors in {dtype.value}, {size / 1e6:.1f} MB")


def _check_out_file(path: Path, force: bool) -> None:
    """Before the work, not after it."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; OUT_FILE is the weights file to write")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}, the folder of OUT_FILE, does not exist")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; --force overwrites it")

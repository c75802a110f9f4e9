"""`python -m spacy elmo export`: a weights file of ours becomes files of another program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from .errors import one_message

if TYPE_CHECKING:
    from ..bilm.weights import Weights

export_cli = typer.Typer(
    name="export",
    help="Write a weights file (.safetensors) as the files of another program.",
    no_args_is_help=True,
)

File = Annotated[
    str, typer.Argument(metavar="FILE", help="Weights file, or the name of a bundled biLM")
]
OutDir = Annotated[Path, typer.Argument(metavar="OUT_DIR", help="Folder to write to")]
OutFile = Annotated[Path, typer.Argument(metavar="OUT_FILE", help="File to write (.onnx)")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite an earlier export")]


@export_cli.command("bilm-hdf5")
def bilm_hdf5_cli(file: File, out_dir: OutDir, force: Force = False) -> None:
    """Write what bilm-tf and AllenNLP read: options.json, weights.hdf5; with a head, its softmax and vocabulary."""
    from ..convert.allennlp.export import inexpressible
    from ..convert.bilm_tf.export import export

    weights = _run(export, file, out_dir, force)
    if problems := inexpressible(weights.config):
        msg.warn("bilm-tf can read these files, but AllenNLP cannot:\n  " + "\n  ".join(problems))


@export_cli.command("allennlp")
def allennlp_cli(file: File, out_dir: OutDir, force: Force = False) -> None:
    """Write the state dict of AllenNLP's Elmo (weights.th), and options.json."""
    from ..convert.allennlp.export import export

    _run(export, file, out_dir, force)


@export_cli.command("onnx")
def onnx_cli(file: File, out_file: OutFile, force: Force = False) -> None:
    """Write the network as one .onnx file, which runs without Python."""
    from ..convert.onnx.export import export

    _run(export, file, out_file, force)


def _run(export: Callable[..., list[Path]], file: str, out: Path, force: bool) -> Weights:
    from ..bilm.weights import Weights
    from ..pipeline.bundled import find_weights

    with one_message():
        weights = Weights.load(find_weights(file))
        written = export(weights, out, force=force)
    for path in written:
        msg.good(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    return weights

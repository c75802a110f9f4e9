"""`python -m spacy elmo export`: a weights file to the files of another program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from .arguments import QuietOption, WeightsArgument
from .errors import report_errors
from .progress import stage_bar
from .terminal import file_size

if TYPE_CHECKING:
    from ..bilm.weights import Weights

export_cli = typer.Typer(
    name="export",
    help="Write a weights file as the files of other programs.",
    no_args_is_help=True,
)

OutDirArgument = Annotated[Path, typer.Argument(metavar="OUT_DIR", help="Folder to write to")]
OutFileArgument = Annotated[Path, typer.Argument(metavar="OUT_FILE", help="File to write (.onnx)")]
ForceOption = Annotated[bool, typer.Option("--force", "-f", help="Overwrite an earlier export")]


@export_cli.command("bilm-hdf5")
def bilm_hdf5_cli(
    source: WeightsArgument,
    out_dir: OutDirArgument,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the files of bilm-tf and AllenNLP.

    They are options.json and weights.hdf5; with a head, its softmax and vocabulary.
    """
    from ..converters.allennlp.export import inexpressible
    from ..converters.bilm_tf.export import export

    weights = _run(export, source, out_dir, force, quiet)
    if problems := inexpressible(weights.config):
        msg.warn("bilm-tf can read these files, but AllenNLP cannot:\n  " + "\n  ".join(problems))


@export_cli.command("allennlp")
def allennlp_cli(
    source: WeightsArgument,
    out_dir: OutDirArgument,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the state dict of AllenNLP's Elmo.

    The files are weights.th and options.json.
    """
    from ..converters.allennlp.export import export

    _run(export, source, out_dir, force, quiet)


@export_cli.command("onnx")
def onnx_cli(
    source: WeightsArgument,
    out_file: OutFileArgument,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the network as one .onnx file, which runs without Python."""
    from ..converters.onnx.export import export

    _run(export, source, out_file, force, quiet)


def _run(
    export: Callable[..., list[Path]], source: str, out: Path, force: bool, quiet: bool
) -> Weights:
    from ..bilm.weights import Weights
    from ..pipeline.weight_names import find_weights

    with report_errors():
        path = find_weights(source)
        with stage_bar("Reading", "Writing", quiet=quiet) as end_stage:
            weights = Weights.load(path)
            end_stage()
            written = export(weights, out, force=force)
            end_stage()
    for file in written:
        msg.good(f"{file}: {file_size(file.stat().st_size)}")
    return weights

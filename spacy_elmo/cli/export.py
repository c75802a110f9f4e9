"""`python -m spacy elmo export`: convert a weights file to the format of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from .arguments import QuietOption, WeightsArgument
from .errors import report_errors
from .progress import stage_bar
from .terminal import file_size


def export_cli(
    format: Annotated[
        str, typer.Argument(metavar="FORMAT", help="Format to write: bilm-hdf5, allennlp or onnx")
    ],
    source: WeightsArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder to write; for onnx, file to write (.onnx)")
    ],
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Overwrite an earlier export")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Write a weights file in the format of another program.

    bilm-hdf5 writes options.json and weights.hdf5 for bilm-tf and AllenNLP. If the weights have a softmax,
    bilm-hdf5 also writes the softmax and the vocabulary. allennlp writes options.json and weights.th, a state
    dict of AllenNLP's Elmo. onnx writes the network to one file, which runs without Python.
    """
    with report_errors():
        from ..bilm.weights import Weights
        from ..converters.allennlp import inexpressible
        from ..converters.convert import EXPORTS
        from ..weight_names import find_weights

        if format not in EXPORTS:
            raise ValueError(f"The format {format!r} is unknown. Use one of {', '.join(EXPORTS)}")
        path = find_weights(source)
        with stage_bar("Reading", "Writing", quiet=quiet) as end_stage:
            weights = Weights.load(path)
            end_stage()
            written = EXPORTS[format](weights, out, force=force)
            end_stage()
    for file in written:
        msg.good(f"{file}: {file_size(file.stat().st_size)}")
    if format == "bilm-hdf5" and (problems := inexpressible(weights.config)):
        msg.warn("bilm-tf can read these files, but AllenNLP cannot:\n  " + "\n  ".join(problems))

"""`python -m spacy elmo convert`: the weights of another program to a weights file."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..files import check_output_file
from .arguments import DTypeChoice, QuietOption
from .errors import report_errors
from .progress import stage_bar
from .terminal import file_size


class ModelFormat(str, Enum):
    """Choices of FORMAT."""

    auto = "auto"
    bilm_hdf5 = "bilm-hdf5"
    many_langs = "many-langs"
    allennlp = "allennlp"
    bilm_tf = "bilm-tf"


def convert_cli(
    format: Annotated[
        ModelFormat, typer.Argument(metavar="FORMAT", help="Format of IN; auto detects it")
    ],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="Folder, archive (.zip, .tar.gz), or a file of the model"
        ),
    ],
    out_file: Annotated[
        Path, typer.Argument(metavar="OUT_FILE", help="Weights file to write (.safetensors)")
    ],
    options: Annotated[
        Path | None,
        typer.Option(help="Options file, if IN has none or several; not of many-langs"),
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            help="Words of the word table or the softmax, one per line, if IN has none or several;"
            " of bilm-hdf5 and bilm-tf"
        ),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Weights file, if IN has several; of bilm-hdf5")
    ] = None,
    softmax: Annotated[
        Path | None,
        typer.Option(help="File of the softmax, if IN has none or several; of bilm-hdf5"),
    ] = None,
    token_vectors: Annotated[
        Path | None,
        typer.Option(
            help="File with the vectors of the vocabulary's words, instead of characters; of bilm-hdf5"
        ),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Prefix of the names of the ELMo's parameters; of allennlp")
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Convert a model that normalizes its layers, or whose options are missing; of allennlp",
        ),
    ] = False,
    dtype: Annotated[
        DTypeChoice, typer.Option(help="Type of the stored tensors")
    ] = DTypeChoice.float32,
    warm: Annotated[
        Path | None,
        typer.Option(
            metavar="TEXT",
            help='Text to estimate the state of start = "warm" on, a sentence per line, words separated by spaces',
        ),
    ] = None,
    lang: Annotated[
        str | None,
        typer.Option(
            metavar="CODE",
            help="Language of the model, which no format contains; stored in its card",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite OUT_FILE")] = False,
    quiet: QuietOption = False,
) -> None:
    """Convert weights of other programs to a weights file.

    FORMAT is auto, or bilm-hdf5 (options.json and HDF5 weights of bilm-tf or AllenNLP), many-langs (ELMoForManyLangs:
    encoder.pkl, token_embedder.pkl and its dictionaries), allennlp (the ELMo in a trained AllenNLP model: its archive,
    its folder, or a state dict), or bilm-tf (a TensorFlow checkpoint of bilm-tf, with its softmax).
    """
    with report_errors():
        from ..converters.api import read_model

        check_output_file(out_file, force=force)
        with stage_bar("Reading", "Writing", quiet=quiet) as end_stage:
            conversion = read_model(
                source,
                format.value,
                dtype=dtype.value,
                warm=warm,
                lang=lang,
                options=options,
                vocabulary=vocabulary,
                weights=weights,
                softmax=softmax,
                token_vectors=token_vectors,
                prefix=prefix,
                accept=accept,
            )
            end_stage()
            conversion.weights.save(out_file)
            end_stage()
    for path in conversion.files:
        msg.info(f"Read {path}")
    for note in conversion.notes:
        msg.info(note)
    result = conversion.weights
    msg.table(result.config.to_dict())
    size = file_size(out_file.stat().st_size)
    msg.good(f"{out_file}: {len(result.tensors)} tensors in {dtype.value}, {size}")

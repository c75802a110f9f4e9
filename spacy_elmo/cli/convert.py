"""`python -m spacy elmo convert`: convert the weights of another program to a weights file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from .arguments import QuietOption
from .errors import report_errors
from .progress import stage_bar
from .terminal import file_size


def convert_cli(
    format: Annotated[
        str, typer.Argument(metavar="FORMAT", help="Format of IN, or auto to detect it")
    ],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="Model to convert: folder, archive (.zip, .tar.gz) or file"
        ),
    ],
    out_file: Annotated[
        Path, typer.Argument(metavar="OUT_FILE", help="Weights file to write (.safetensors)")
    ],
    options: Annotated[
        Path | None,
        typer.Option(help="Options file, if IN contains none or several (not for many-langs)"),
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            help="Vocabulary file (one word per line), if IN contains none or several (only for bilm-hdf5 and bilm-tf)"
        ),
    ] = None,
    softmax: Annotated[
        Path | None,
        typer.Option(help="Softmax file, if IN contains none or several (only for bilm-hdf5)"),
    ] = None,
    token_vectors: Annotated[
        Path | None,
        typer.Option(
            help="File with a vector for each word of the vocabulary. The model uses these vectors instead of"
            " characters (only for bilm-hdf5)"
        ),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="If the options are missing, assume those of the published models (only for allennlp)",
        ),
    ] = False,
    warm: Annotated[
        Path | None,
        typer.Option(
            metavar="TEXT",
            help='Text from which to estimate the initial LSTM state that elmo uses with start = "warm". One sentence'
            " per line, words separated by spaces",
        ),
    ] = None,
    lang: Annotated[
        str | None,
        typer.Option(
            metavar="CODE",
            help="Language code to store in OUT_FILE, because the formats do not contain the language",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite OUT_FILE")] = False,
    quiet: QuietOption = False,
) -> None:
    """Convert a model of another ELMo program to a weights file.

    The formats are auto (detect the format), bilm-hdf5 (options.json and HDF5 weights of bilm-tf or
    AllenNLP), many-langs (encoder.pkl, token_embedder.pkl and dictionaries of ELMoForManyLangs), allennlp
    (the ELMo in a trained AllenNLP model: archive, folder or state dict) and bilm-tf (a TensorFlow checkpoint
    of bilm-tf, with its softmax).
    """
    with report_errors():
        from ..converters.convert import check_out, read_model

        check_out(out_file, force=force)
        with stage_bar("Reading", "Writing", quiet=quiet) as end_stage:
            weights, notes = read_model(
                source,
                format,
                warm=warm,
                lang=lang,
                options=options,
                vocabulary=vocabulary,
                softmax=softmax,
                token_vectors=token_vectors,
                accept=accept,
            )
            end_stage()
            weights.save(out_file)
            end_stage()
    for note in notes:
        msg.info(note)
    msg.table(weights.config.to_dict())
    msg.good(f"{out_file}: {len(weights.tensors)} tensors, {file_size(out_file.stat().st_size)}")

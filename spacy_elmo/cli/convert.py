"""`python -m spacy elmo convert`: foreign weights become a weights file of ours."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from .errors import one_message
from .out_file import check_out_file

if TYPE_CHECKING:
    from ..convert.conversion import Conversion

convert_cli = typer.Typer(
    name="convert",
    help="Convert the weights of another program to a weights file (.safetensors).",
    no_args_is_help=True,
)


class Precision(str, Enum):
    """Types of the stored tensors."""

    float32 = "float32"
    float16 = "float16"


Source = Annotated[
    Path, typer.Argument(metavar="IN", help="Folder or archive (.zip, .tar.gz) of the model")
]
OutFile = Annotated[
    Path, typer.Argument(metavar="OUT_FILE", help="Weights file to write (.safetensors)")
]
Options = Annotated[Path | None, typer.Option(help="The options file, if IN has none or several")]
Vocabulary = Annotated[
    Path | None,
    typer.Option(help="The words of a table or a softmax, one a line, if IN has none or several"),
]
Dtype = Annotated[Precision, typer.Option(help="Type of the stored tensors")]
Warm = Annotated[
    Path | None,
    typer.Option(
        metavar="TEXT",
        help='Estimate the state for start = "warm" on a text, one sentence a line, words separated by spaces',
    ),
]
Lang = Annotated[
    str | None,
    typer.Option(
        metavar="CODE", help="Language of the model, which no format says; kept in its card"
    ),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite OUT_FILE")]


@convert_cli.command("bilm-hdf5")
def bilm_hdf5_cli(
    source: Source,
    out_file: OutFile,
    options: Options = None,
    weights: Annotated[
        Path | None, typer.Option(help="The weights file, if IN has several")
    ] = None,
    vocabulary: Vocabulary = None,
    softmax: Annotated[
        Path | None, typer.Option(help="The file of the softmax, if IN has none or several")
    ] = None,
    token_vectors: Annotated[
        Path | None,
        typer.Option(
            help="File with the vectors of the vocabulary's words, in place of characters"
        ),
    ] = None,
    dtype: Dtype = Precision.float32,
    warm: Warm = None,
    lang: Lang = None,
    force: Force = False,
) -> None:
    """Convert a model of bilm-tf or AllenNLP: options.json and HDF5 weights. IN may also be the weights file."""
    from ..convert.bilm_tf.conversion import convert

    read = partial(
        convert,
        options=options,
        weights=weights,
        vocabulary=vocabulary,
        softmax=softmax,
        token_vectors=token_vectors,
    )
    _run(read, source, out_file, dtype, warm, lang, force)


@convert_cli.command("many-langs")
def many_langs_cli(
    source: Source,
    out_file: OutFile,
    dtype: Dtype = Precision.float32,
    warm: Warm = None,
    lang: Lang = None,
    force: Force = False,
) -> None:
    """Convert a model of ELMoForManyLangs: encoder.pkl, token_embedder.pkl and its dictionaries."""
    from ..convert.many_langs.conversion import convert

    _run(convert, source, out_file, dtype, warm, lang, force)


@convert_cli.command("allennlp")
def allennlp_cli(
    source: Source,
    out_file: OutFile,
    options: Options = None,
    prefix: Annotated[
        str | None, typer.Option(help="What the names of the ELMo's parameters start with")
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Convert a model that normalises its layers, or whose options are missing",
        ),
    ] = False,
    dtype: Dtype = Precision.float32,
    warm: Warm = None,
    lang: Lang = None,
    force: Force = False,
) -> None:
    """Convert the ELMo in a trained AllenNLP model: its archive, or its folder. IN may also be a state dict (.th)."""
    from ..convert.allennlp.conversion import convert

    read = partial(convert, options=options, prefix=prefix, accept=accept)
    _run(read, source, out_file, dtype, warm, lang, force)


@convert_cli.command("bilm-tf")
def bilm_tf_cli(
    source: Source,
    out_file: OutFile,
    options: Options = None,
    vocabulary: Vocabulary = None,
    dtype: Dtype = Precision.float32,
    warm: Warm = None,
    lang: Lang = None,
    force: Force = False,
) -> None:
    """Convert a TensorFlow checkpoint of bilm-tf, with its softmax. IN may also be its .index file."""
    from ..convert.bilm_tf.checkpoint import convert

    read = partial(convert, options=options, vocabulary=vocabulary)
    _run(read, source, out_file, dtype, warm, lang, force)


@convert_cli.command("auto")
def auto_cli(
    source: Source,
    out_file: OutFile,
    dtype: Dtype = Precision.float32,
    warm: Warm = None,
    lang: Lang = None,
    force: Force = False,
) -> None:
    """Find out which of these IN is, and convert it."""
    from ..convert.detect import convert

    _run(convert, source, out_file, dtype, warm, lang, force)


def _run(
    convert: Callable[..., Conversion],
    source: Path,
    out_file: Path,
    dtype: Precision,
    warm: Path | None,
    lang: str | None,
    force: bool,
) -> None:
    import torch

    from ..convert.readers.archive import opened
    from ..convert.warm import with_start

    with one_message():
        check_out_file(out_file, "OUT_FILE", force=force)
        with opened(source) as files:
            conversion = convert(files.path, dtype=getattr(torch, dtype.value))
            if warm is not None:
                conversion = with_start(conversion, warm)
            if lang is not None:
                conversion.weights.card["language"] = lang
            conversion.weights.save(out_file)
    result = conversion.weights
    for path in conversion.files:
        msg.info(f"Read {files.shown(path)}")
    for note in conversion.notes:
        msg.info(files.shown(note))
    msg.table(result.config.to_dict())
    size = out_file.stat().st_size
    msg.good(f"{out_file}: {len(result.tensors)} tensors in {dtype.value}, {size / 1e6:.1f} MB")

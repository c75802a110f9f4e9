"""`python -m spacy elmo convert`: the weights of another program to a weights file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from .arguments import DTypeChoice, QuietOption
from .errors import report_errors
from .output_files import check_output_file
from .progress import reading_bar, stage_bar
from .terminal import file_size

if TYPE_CHECKING:
    from ..converters.result import Conversion

convert_cli = typer.Typer(
    name="convert",
    help="Convert weights of other programs to a weights file.",
    no_args_is_help=True,
)


SourceArgument = Annotated[
    Path, typer.Argument(metavar="IN", help="Folder or archive (.zip, .tar.gz) of the model")
]
OutFileArgument = Annotated[
    Path, typer.Argument(metavar="OUT_FILE", help="Weights file to write (.safetensors)")
]
OptionsOption = Annotated[Path | None, typer.Option(help="Options file, if IN has none or several")]
VocabularyOption = Annotated[
    Path | None,
    typer.Option(
        help="Words of the word table or the softmax, one per line, if IN has none or several"
    ),
]
DTypeOption = Annotated[DTypeChoice, typer.Option(help="Type of the stored tensors")]
WarmOption = Annotated[
    Path | None,
    typer.Option(
        metavar="TEXT",
        help='Text to estimate the state of start = "warm" on, a sentence per line, words separated by spaces',
    ),
]
ModelLanguageOption = Annotated[
    str | None,
    typer.Option(
        metavar="CODE", help="Language of the model, which no format contains; stored in its card"
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", "-f", help="Overwrite OUT_FILE")]


@convert_cli.command("bilm-hdf5")
def bilm_hdf5_cli(
    source: SourceArgument,
    out_file: OutFileArgument,
    options: OptionsOption = None,
    weights: Annotated[Path | None, typer.Option(help="Weights file, if IN has several")] = None,
    vocabulary: VocabularyOption = None,
    softmax: Annotated[
        Path | None, typer.Option(help="File of the softmax, if IN has none or several")
    ] = None,
    token_vectors: Annotated[
        Path | None,
        typer.Option(help="File with the vectors of the vocabulary's words, instead of characters"),
    ] = None,
    dtype: DTypeOption = DTypeChoice.float32,
    warm: WarmOption = None,
    lang: ModelLanguageOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Convert an HDF5 model of bilm-tf or AllenNLP.

    Its files are options.json and HDF5 weights. IN may also be the weights file.
    """
    from ..converters.bilm_tf.hdf5_conversion import convert

    read = partial(
        convert,
        options=options,
        weights=weights,
        vocabulary=vocabulary,
        softmax=softmax,
        token_vectors=token_vectors,
    )
    _run(read, source, out_file, dtype, warm, lang, force, quiet)


@convert_cli.command("many-langs")
def many_langs_cli(
    source: SourceArgument,
    out_file: OutFileArgument,
    dtype: DTypeOption = DTypeChoice.float32,
    warm: WarmOption = None,
    lang: ModelLanguageOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Convert a model of ELMoForManyLangs.

    Its files are encoder.pkl, token_embedder.pkl and its dictionaries.
    """
    from ..converters.many_langs.conversion import convert

    _run(convert, source, out_file, dtype, warm, lang, force, quiet)


@convert_cli.command("allennlp")
def allennlp_cli(
    source: SourceArgument,
    out_file: OutFileArgument,
    options: OptionsOption = None,
    prefix: Annotated[
        str | None, typer.Option(help="Prefix of the names of the ELMo's parameters")
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Convert a model that normalizes its layers, or whose options are missing",
        ),
    ] = False,
    dtype: DTypeOption = DTypeChoice.float32,
    warm: WarmOption = None,
    lang: ModelLanguageOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Convert the ELMo in a trained AllenNLP model.

    IN is its archive, its folder, or a state dict (.th).
    """
    from ..converters.allennlp.conversion import convert

    read = partial(convert, options=options, prefix=prefix, accept=accept)
    _run(read, source, out_file, dtype, warm, lang, force, quiet)


@convert_cli.command("bilm-tf")
def bilm_tf_cli(
    source: SourceArgument,
    out_file: OutFileArgument,
    options: OptionsOption = None,
    vocabulary: VocabularyOption = None,
    dtype: DTypeOption = DTypeChoice.float32,
    warm: WarmOption = None,
    lang: ModelLanguageOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Convert a TensorFlow checkpoint of bilm-tf, with its softmax.

    IN may also be its .index file.
    """
    from ..converters.bilm_tf.checkpoint_conversion import convert

    read = partial(convert, options=options, vocabulary=vocabulary)
    _run(read, source, out_file, dtype, warm, lang, force, quiet)


@convert_cli.command("auto")
def auto_cli(
    source: SourceArgument,
    out_file: OutFileArgument,
    dtype: DTypeOption = DTypeChoice.float32,
    warm: WarmOption = None,
    lang: ModelLanguageOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Detect the format of IN, and convert it."""
    from ..converters.formats import convert

    _run(convert, source, out_file, dtype, warm, lang, force, quiet)


def _run(
    convert: Callable[..., Conversion],
    source: Path,
    out_file: Path,
    dtype: DTypeChoice,
    warm: Path | None,
    lang: str | None,
    force: bool,
    quiet: bool,
) -> None:
    import torch

    from ..converters.readers.archive import opened
    from ..converters.warm import with_start

    with report_errors():
        check_output_file(out_file, "OUT_FILE", force=force)
        # An archive is unpacked in the first stage.
        with stage_bar("Reading", "Writing", quiet=quiet) as end_stage, opened(source) as files:
            conversion = convert(files.path, dtype=getattr(torch, dtype.value))
            end_stage()
            if warm is not None:
                text = warm
                with reading_bar(lambda: [text], quiet=quiet):
                    conversion = with_start(conversion, text)
            if lang is not None:
                conversion.weights.card["language"] = lang
            conversion.weights.save(out_file)
            end_stage()
    result = conversion.weights
    for path in conversion.files:
        msg.info(f"Read {files.shown(path)}")
    for note in conversion.notes:
        msg.info(files.shown(note))
    msg.table(result.config.to_dict())
    size = file_size(out_file.stat().st_size)
    msg.good(f"{out_file}: {len(result.tensors)} tensors in {dtype.value}, {size}")

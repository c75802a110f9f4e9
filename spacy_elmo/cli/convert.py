"""`python -m spacy elmo download`, `convert` and `export`: weights of other programs, and weights for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .arguments import ForceOption, WeightsArgument
from .output import file_size, msg, show_command, show_file


def download_cli(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of a model in the list")
    ] = None,
) -> None:
    """List public models, or download one.

    Without NAME, the command lists the public models that it knows. With NAME, the command downloads a model
    to ~/.cache/spacy-elmo, or to $SPACY_ELMO_CACHE if it is set, and shows the command that converts the model.
    A file that is already there is not downloaded again.
    """
    from ..converters.download import cache_folder, fetch, find_model, known_models, sha256_of

    if name is None:
        rows = [
            (m.name, f"{m.parameters / 1e6:.1f}M" if m.parameters else "", m.about, m.licence)
            for m in known_models().values()
        ]
        msg.table(rows, header=("Name", "Size", "About", "Licence"))
        msg.info("The URLs and licences were copied from the authors' pages and were not verified")
        return
    model = find_model(name)
    msg.info(f"{model.about}. Licence: {model.licence} ({model.source})")
    source = folder = cache_folder() / name
    for url, sha256 in model.files.items():
        path = fetch(url, sha256, folder, progress=sys.stderr.isatty())
        typer.echo(f"{path} ({file_size(path.stat().st_size)})\n  SHA-256 {sha256_of(path)}")
        if sha256 is None:
            msg.warn(f"No published checksum of {path.name} is known, so it was not verified")
        source = path if len(model.files) == 1 else folder
    msg.good("Downloaded. Convert the model with this command:")
    options = [
        part for name, file in model.options.items() for part in (f"--{name}", folder / file)
    ]
    lang = ("--lang", model.languages[0]) if model.languages else ()
    show_command("elmo", "convert", model.format, source, "OUT_FILE", *options, *lang)


def convert_cli(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help="Format of IN, or auto")],
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="Folder, archive (.zip, .tar.gz) or file")
    ],
    out_file: Annotated[
        Path, typer.Argument(metavar="OUT_FILE", help="Weights file to write (.safetensors)")
    ],
    options: Annotated[
        Path | None, typer.Option(help="Options file, if IN contains none or several")
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="Vocabulary file, one word per line (only for bilm-hdf5 and bilm-tf)"),
    ] = None,
    softmax: Annotated[Path | None, typer.Option(help="Softmax file (only for bilm-hdf5)")] = None,
    token_vectors: Annotated[
        Path | None,
        typer.Option(help="Vectors of the words, instead of characters (only for bilm-hdf5)"),
    ] = None,
    warm: Annotated[
        Path | None,
        typer.Option(
            metavar="TEXT",
            help='Text of tokenized sentences to estimate the state for start = "warm" from',
        ),
    ] = None,
    lang: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Language code to store, which the formats do not have"),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Convert a model of another ELMo program to a weights file.

    The formats are auto (detect the format), bilm-hdf5 (options.json and HDF5 weights of bilm-tf or
    AllenNLP), many-langs (encoder.pkl, token_embedder.pkl and dictionaries of ELMoForManyLangs), allennlp
    (the ELMo in a trained AllenNLP model: archive, folder or state dict) and bilm-tf (a TensorFlow checkpoint
    of bilm-tf, with its softmax).
    """
    from ..converters.convert import check_weights_file, read_model

    check_weights_file(out_file, force=force)
    weights, notes = read_model(
        source, format, warm=warm, lang=lang, options=options, vocabulary=vocabulary, softmax=softmax,
        token_vectors=token_vectors,
    )  # fmt: skip
    weights.save(out_file)
    for note in notes:
        msg.info(note)
    msg.table(weights.config.to_dict().items())
    show_file(out_file)


def export_cli(
    format: Annotated[
        str, typer.Argument(metavar="FORMAT", help="Format to write: bilm-hdf5, allennlp or onnx")
    ],
    source: WeightsArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder to write; for onnx, file to write (.onnx)")
    ],
    force: ForceOption = False,
) -> None:
    """Write a weights file in the format of another program.

    bilm-hdf5 writes options.json and weights.hdf5 for bilm-tf and AllenNLP. If the weights have a softmax,
    bilm-hdf5 also writes the softmax and the vocabulary. allennlp writes options.json and weights.th, a state
    dict of AllenNLP's Elmo. onnx writes the network to one file, which runs without Python.
    """
    from ..bilm.weights import Weights
    from ..converters.allennlp import inexpressible
    from ..converters.convert import EXPORTS
    from ..weight_names import find_weights

    if format not in EXPORTS:
        raise ValueError(f"The format {format!r} is unknown. Use one of {', '.join(EXPORTS)}")
    weights = Weights.load(find_weights(source))
    for file in EXPORTS[format](weights, out, force=force):
        show_file(file)
    if format == "bilm-hdf5" and (problems := inexpressible(weights.config)):
        msg.warn("bilm-tf can read these files, but AllenNLP cannot:\n  " + "\n  ".join(problems))

"""`python -m spacy elmo embed`: write the vectors of a corpus to disk."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from .arguments import (
    CorpusArgument,
    ForceOption,
    GpuOption,
    LanguageOption,
    PipelineArgument,
    TokenizedOption,
    open_pipeline,
)
from .output import msg, reading_bar

Format = Enum("Format", {"parquet": "parquet", "hdf5": "hdf5"}, type=str)
Layers = Enum("Layers", {"all": "all", "average": "average", "top": "top"}, type=str)
DType = Enum("DType", {"float32": "float32", "float16": "float16"}, type=str)
Unit = Enum("Unit", {"token": "token", "span": "span"}, type=str)


def embed_cli(
    source: PipelineArgument,
    text: CorpusArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder of the Parquet files, or HDF5 file")
    ],
    format: Annotated[Format, typer.Option(help="File format")] = Format.parquet,
    layers: Annotated[
        Layers, typer.Option(help="All layers, the average of all layers, or the top layer")
    ] = Layers.all,
    dtype: Annotated[DType, typer.Option(help="Data type of the vectors")] = DType.float32,
    unit: Annotated[
        Unit, typer.Option(help="A vector for each token, or the mean of each span (sentence)")
    ] = Unit.token,
    tokenized: TokenizedOption = False,
    lang: LanguageOption = None,
    force: ForceOption = False,
    gpu_id: GpuOption = -1,
) -> None:
    """Write the vectors of a corpus to disk.

    Each row of a Parquet file is a token or a span, with the name of its document (such as letters.txt:12), its
    index and its text. If a run was interrupted, repeat the command: complete files are kept.

    An hdf5 file has the layout of bilm-tf: the dataset "7" has the vectors of the eighth document.
    """
    from ..lab.documents import corpus_files
    from ..lab.embed import embed

    nlp = open_pipeline(source, lang=lang, tokenized=tokenized, gpu_id=gpu_id)
    with reading_bar(corpus_files(text)):
        embed(
            nlp, text, out, layers=layers.value, dtype=dtype.value, unit=unit.value,
            format=format.value, tokenized=tokenized, force=force,
        )  # fmt: skip
    msg.good(f"Vectors: {out}")

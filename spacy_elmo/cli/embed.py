"""`python -m spacy elmo embed`: write the vectors of a corpus to disk."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from spacy.cli._util import import_code
from wasabi import msg

from .arguments import (
    CodeOption,
    CorpusArgument,
    DTypeChoice,
    GpuOption,
    LanguageOption,
    LayersChoice,
    PipelineArgument,
    QuietOption,
    TokenizedOption,
)
from .errors import report_errors
from .pipelines import load_pipeline, use_gpu
from .progress import reading_bar


class FormatChoice(str, Enum):
    """Choices of `--format`."""

    parquet = "parquet"
    hdf5 = "hdf5"


class UnitChoice(str, Enum):
    """Choices of `--unit`."""

    token = "token"
    span = "span"


def embed_cli(
    source: PipelineArgument,
    text: CorpusArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder of the Parquet files, or HDF5 file")
    ],
    file_format: Annotated[
        FormatChoice, typer.Option("--format", help="File format of the vectors")
    ] = FormatChoice.parquet,
    layers: Annotated[
        LayersChoice,
        typer.Option(help="Write all layers, the average of all layers, or the top layer"),
    ] = LayersChoice.all,
    dtype: Annotated[
        DTypeChoice, typer.Option(help="Data type of the vectors")
    ] = DTypeChoice.float32,
    unit: Annotated[
        UnitChoice,
        typer.Option(help="Write a vector for each token, or for each span (sentence): their mean"),
    ] = UnitChoice.token,
    tokenized: TokenizedOption = False,
    lang: LanguageOption = None,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Replace the vectors in OUT")
    ] = False,
    gpu_id: GpuOption = -1,
    quiet: QuietOption = False,
    code: CodeOption = None,
) -> None:
    """Write the vectors of a corpus to disk.

    Each row of a Parquet file is a token or a span, with the name of its document (such as letters.txt:12), its
    index and its text. If a run was interrupted, repeat the command: complete files are kept.

    An hdf5 file has the layout of bilm-tf: the dataset "7" has the vectors of the eighth document.
    """
    with report_errors():
        import_code(code)
        use_gpu(gpu_id)
        from ..lab.corpora.documents import corpus_files
        from ..lab.embed import embed

        nlp = load_pipeline(source, lang=lang, tokenized=tokenized)
        with reading_bar(lambda: corpus_files(text), quiet=quiet):
            embed(
                nlp, text, out, layers=layers.value, dtype=dtype.value, unit=unit.value,
                format=file_format.value, tokenized=tokenized, force=force,
            )  # fmt: skip
    msg.good(f"Vectors: {out}")

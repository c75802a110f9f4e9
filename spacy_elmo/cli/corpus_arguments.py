"""What commands that read a corpus with a pipeline are given."""

from pathlib import Path
from typing import Annotated

import typer

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE_OR_WEIGHTS",
        help="Pipeline with an elmo, weights file (.safetensors), or bundled name",
    ),
]
CorpusArgument = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="File, directory or glob pattern: text, .jsonl or .conllu (.gz, .xz, .zst), .spacy",
    ),
]
SourceLangOption = Annotated[
    str | None,
    typer.Option("--lang", help="Language, for a weights file that does not say it"),
]
CodeOption = Annotated[Path | None, typer.Option("--code", "-c", help="Python file to import")]

"""Arguments and options that several commands share, each declared once."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class LayersChoice(str, Enum):
    """Choices of `--layers`."""

    all = "all"
    average = "average"
    top = "top"


class DTypeChoice(str, Enum):
    """Choices of `--dtype`."""

    float32 = "float32"
    float16 = "float16"


PipelineArgument = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE_OR_WEIGHTS",
        help="Pipeline with an elmo, weights file (.safetensors), or name of a bundled or installed biLM",
    ),
]
WeightsArgument = Annotated[
    str,
    typer.Argument(
        metavar="WEIGHTS",
        help="Weights file (.safetensors), or name of a bundled or installed biLM",
    ),
]
CorpusArgument = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="File, directory or glob pattern: text, .jsonl or .conllu (.gz, .xz, .zst), .spacy",
    ),
]
ConfigArgument = Annotated[Path, typer.Argument(metavar="CONFIG", help="Pretraining config (.cfg)")]
FigureFilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--out", "-o", help="Picture (.png), page (.html) or data (.json) to write; repeatable"
    ),
]
LanguageOption = Annotated[
    str | None,
    typer.Option("--lang", help="Language, instead of that of the weights' card"),
]
TokenizerOption = Annotated[
    str | None,
    typer.Option("--lang", help="Language of the tokenizer, instead of the weights' tokenizer"),
]
TokenizedOption = Annotated[
    bool,
    typer.Option("--tokenized", help="The text is words separated by spaces, a sentence per line"),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Do not show a progress bar")]
GpuOption = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID, or -1 for the CPU")]
CodeOption = Annotated[Path | None, typer.Option("--code", "-c", help="Python file to import")]

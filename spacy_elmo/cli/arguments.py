"""Definitions of the arguments and options that several commands share."""

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
        help="Pipeline with an elmo component, weights file (.safetensors), or name of a bundled or installed biLM",
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
        help="Corpus: file, folder or glob pattern. The files are plain text, .jsonl or .conllu (possibly compressed as"
        " .gz, .xz or .zst), or .spacy",
    ),
]
ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="Config file for pretraining (.cfg)")
]
LanguageOption = Annotated[
    str | None,
    typer.Option("--lang", help="Language code, such as en. Default: the language of the weights"),
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--lang",
        help="Language code of the spaCy tokenizer to use. Default: the tokenizer of the weights",
    ),
]
TokenizedOption = Annotated[
    bool,
    typer.Option(
        "--tokenized",
        help="The text is already tokenized: words separated by spaces. For `evaluate` and `score`, each line is also"
        " a sentence",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar")]
GpuOption = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID, or -1 for the CPU")]
CodeOption = Annotated[
    Path | None,
    typer.Option(
        "--code", "-c", help="Python file with additional code, such as registered functions"
    ),
]

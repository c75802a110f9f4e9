"""Arguments and options that several commands share, and what they stand for: pipelines, settings, lines of the
standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from spacy.cli._util import NoSuchOption, parse_config_overrides

if TYPE_CHECKING:
    from spacy.language import Language

PipelineArgument = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE_OR_WEIGHTS",
        help="Pipeline with an elmo component, weights file (.safetensors), or name of a bundled or installed biLM",
    ),
]
WeightsArgument = Annotated[
    str, typer.Argument(metavar="WEIGHTS", help="Weights file, or name of an installed biLM")
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
    typer.Option("--lang", "-l", help="Language code, such as la. Default: that of the weights"),
]
TokenizedOption = Annotated[
    bool, typer.Option("--tokenized", help="The text is words separated by spaces")
]
ForceOption = Annotated[bool, typer.Option("--force", "-f", help="Replace earlier output")]
GpuOption = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID, or -1 for the CPU")]
CodeOption = Annotated[
    Path | None,
    typer.Option("--code", "-c", help="Python file to import first, with registered functions"),
]
JsonOutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="JSON file to write the results to")
]


def config_overrides(extra_args: list[str]) -> dict[str, Any]:
    """Return the overrides at the end of a command line as {"section.key": value}."""
    try:
        return parse_config_overrides(extra_args)
    except NoSuchOption as error:
        raise ValueError(
            f"This command has no option {error.option_name} (see --help). To override a setting of the config, write"
            " its section as well, for example --training.max_steps 1000"
        ) from error


def open_pipeline(
    source: str, *, lang: str | None = None, tokenized: bool = False, gpu_id: int = -1
) -> Language:
    """Load a pipeline or weights (see `lab.pipelines.load_pipeline`) on a GPU or the CPU."""
    if gpu_id >= 0:
        from spacy import require_gpu

        require_gpu(gpu_id)
    from ..lab import pipelines

    return pipelines.load_pipeline(source, lang=lang, tokenized=tokenized)


def standard_input() -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and the text of each line of the standard input, which is UTF-8 in any locale.
    White space around the text and a byte order mark are removed."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf8")
        except UnicodeDecodeError as error:
            raise ValueError(f"Standard input, line {number}: {error}") from error
        yield number, text.removeprefix("\ufeff").strip()

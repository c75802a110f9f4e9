"""`python -m spacy elmo evaluate`: how well a biLM foresees text."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import srsly
import typer
from wasabi import msg

from ..files import atomic_file
from .errors import one_message

if TYPE_CHECKING:
    from ..pretrain.config import Prepare
    from ..pretrain.scoring.perplexity import Perplexity

WeightsArgument = Annotated[
    str, typer.Argument(metavar="WEIGHTS", help="Weights file with a head, or a bundled name")
]
LangOption = Annotated[
    str | None,
    typer.Option("--lang", help="Tokenize by this language; else as the weights' card says"),
]
TokenizedOption = Annotated[
    bool,
    typer.Option("--tokenized", help="The text is words separated by spaces, a sentence a line"),
]
GpuOption = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU, or -1 for the CPU")]

_HEADER = (
    "Text", "Targets", "<UNK>",
    "Perplexity", "Forward", "Backward", "No <UNK>", "Forward", "Backward",
)  # fmt: skip


def evaluate_cli(
    weights_name: WeightsArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="File, directory or glob pattern of held-out text")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON file for the figures")
    ] = None,
    by_file: Annotated[
        bool, typer.Option("--by-file", help="Show the figures of each file of TEXT, too")
    ] = False,
    lang: LangOption = None,
    tokenized: TokenizedOption = False,
    gpu_id: GpuOption = -1,
) -> None:
    """Perplexity of text under the full softmax: forward, backward and of both, lower is better.

    Targets are the words and the end of each sentence. A word outside the vocabulary counts as <UNK>, one class: the
    figures of two models compare only if their vocabularies do. The last three columns leave <UNK> targets out.
    """
    with one_message():
        from ..bilm.weights import Weights
        from ..pipeline.bundled import find_weights
        from ..pretrain.scoring.evaluate import evaluate
        from ..pretrain.scoring.perplexity import NOTHING
        from ..pretrain.training.distributed import device
        from ..text.files import text_files

        weights = Weights.load(find_weights(weights_name))
        settings = settings_for(weights.card, lang, tokenized)
        if output is not None and not output.parent.is_dir():
            raise FileNotFoundError(f"{output.parent}, the folder of --output, does not exist")
        size = len(weights.vocabulary)
        total, files = NOTHING, {}
        for file, tally in evaluate(weights, text_files(text), settings, device=device(gpu_id)):
            total += tally
            if by_file and tally.targets:
                files[str(file)] = tally.perplexity(size)
        if not total.targets:
            raise ValueError(f"No sentence in the text of {text!r}; nothing to score")
        result = total.perplexity(size)
        if output is not None:
            metrics = dataclasses.asdict(result)
            if by_file:
                metrics["files"] = {name: dataclasses.asdict(p) for name, p in files.items()}
            with atomic_file(output) as partial:
                srsly.write_json(partial, metrics)
    rows = [_row(Path(name).name, p) for name, p in files.items()] + [_row("All", result)]
    msg.table(rows, header=_HEADER, divider=True, aligns=["l"] + ["r"] * (len(_HEADER) - 1))
    msg.info(f"Vocabulary: {size:,} classes. Targets are per direction")
    if output is not None:
        msg.good(f"Saved: {output}")


def settings_for(card: dict, lang: str | None, tokenized: bool) -> Prepare:
    """How text becomes words: as the options say, or else the card of the weights.

    Raises:
        ValueError: as of `pretrain.evaluate.settings_of`.
    """
    from ..pretrain.config import Prepare
    from ..pretrain.scoring.evaluate import settings_of

    if tokenized:
        return Prepare(tokenized=True)
    return settings_of(card) if lang is None else Prepare(lang=lang)


def _row(name: str, p: Perplexity) -> tuple[str, ...]:
    figures = (p.mean, p.forward, p.backward, p.mean_known, p.forward_known, p.backward_known)
    return (name, f"{p.targets:,}", f"{p.unk_share:.1%}", *(f"{figure:.1f}" for figure in figures))

"""`python -m spacy elmo evaluate`: the perplexity of a biLM on text."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ..files import check_output_file
from .arguments import GpuOption, TokenizedOption, TokenizerOption, WeightsArgument
from .errors import report_errors
from .output_files import write_json
from .progress import reading_bar
from .settings import tokenizer_settings

_HEADER = (
    "Targets", "<UNK>",
    "Perplexity", "Forward", "Backward", "No <UNK>", "Forward", "Backward",
)  # fmt: skip


def evaluate_cli(
    source: WeightsArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="Held-out text: file, folder or glob pattern")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON file to write the results to")
    ] = None,
    lang: TokenizerOption = None,
    tokenized: TokenizedOption = False,
    gpu_id: GpuOption = -1,
) -> None:
    """Compute the perplexity of a biLM on held-out text.

    The perplexity is computed with the full softmax. Lower is better.

    In the forward direction, the model predicts each word and the end of each sentence from the words before.
    In the backward direction, the model predicts each word and the start of each sentence from the words
    after. All words outside the vocabulary count as one class, <UNK>, so compare only models with the same
    vocabulary. The column "No <UNK>" and the columns to its right do not count the <UNK> targets.
    """
    with report_errors():
        from ..bilm.weights import Weights
        from ..pretraining.perplexity import NOTHING, evaluate
        from ..pretraining.training.distributed import device
        from ..text.files import text_files
        from ..weight_names import find_weights

        weights = Weights.load(find_weights(source))
        settings = tokenizer_settings(weights.card, lang, tokenized)
        if output is not None:
            check_output_file(output, force=True)
        size = len(weights.vocabulary)
        total, sources = NOTHING, text_files(text)
        with reading_bar(lambda: sources):
            for _, tally in evaluate(weights, sources, settings, device=device(gpu_id)):
                total += tally
        if not total.targets:
            raise ValueError(f"TEXT {text!r} contains no sentence, so there is nothing to evaluate")
        result = total.perplexity(size)
        if output is not None:
            write_json(output, dataclasses.asdict(result))
    values = (
        result.mean, result.forward, result.backward,
        result.mean_known, result.forward_known, result.backward_known,
    )  # fmt: skip
    row = (f"{result.targets:,}", f"{result.unk_share:.1%}", *(f"{value:.1f}" for value in values))
    msg.table([row], header=_HEADER, divider=True, aligns=["r"] * len(row))
    msg.info(
        f"Vocabulary: {size:,} classes. The column Targets counts the targets of one direction"
    )
    if output is not None:
        msg.good(f"Saved: {output}")

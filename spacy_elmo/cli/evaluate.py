"""`python -m spacy elmo evaluate`: the perplexity of a biLM on text."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from ..files import check_output_file
from .arguments import GpuOption, QuietOption, TokenizedOption, TokenizerOption, WeightsArgument
from .errors import report_errors
from .output_files import write_json
from .progress import reading_bar
from .settings import tokenizer_settings

if TYPE_CHECKING:
    from ..pretraining.perplexity import Perplexity

_HEADER = (
    "Text", "Targets", "<UNK>",
    "Perplexity", "Forward", "Backward", "No <UNK>", "Forward", "Backward",
)  # fmt: skip


def evaluate_cli(
    source: WeightsArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="File, directory or glob pattern of held-out text")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON file for the results")
    ] = None,
    by_file: Annotated[
        bool, typer.Option("--by-file", help="Show the results of each file of TEXT as well")
    ] = False,
    lang: TokenizerOption = None,
    tokenized: TokenizedOption = False,
    gpu_id: GpuOption = -1,
    quiet: QuietOption = False,
) -> None:
    """Compute the perplexity of a biLM on held-out text.

    It is the perplexity under the full softmax, forward, backward and mean; lower is better.

    Targets are the words and the end of each sentence. A word outside the vocabulary counts as <UNK>, one class: only
    models with the same vocabulary are comparable. The last three columns are without <UNK> targets.
    """
    with report_errors():
        from ..bilm.weights import Weights
        from ..catalogue.weight_names import find_weights
        from ..pretraining.perplexity import NOTHING, evaluate
        from ..pretraining.training.distributed import device
        from ..text.files import text_files

        weights = Weights.load(find_weights(source))
        settings = tokenizer_settings(weights.card, lang, tokenized)
        if output is not None:
            check_output_file(output, force=True)
        size = len(weights.vocabulary)
        total, files, sources = NOTHING, {}, text_files(text)
        with reading_bar(lambda: sources, quiet=quiet):
            for file, tally in evaluate(weights, sources, settings, device=device(gpu_id)):
                total += tally
                if by_file and tally.targets:
                    files[str(file)] = tally.perplexity(size)
        if not total.targets:
            raise ValueError(f"The text of {text!r} has no sentences; there is nothing to score")
        result = total.perplexity(size)
        if output is not None:
            metrics = dataclasses.asdict(result)
            if by_file:
                metrics["files"] = {name: dataclasses.asdict(p) for name, p in files.items()}
            write_json(output, metrics)
    rows = [_row(Path(name).name, p) for name, p in files.items()] + [_row("All", result)]
    msg.table(rows, header=_HEADER, divider=True, aligns=["l"] + ["r"] * (len(_HEADER) - 1))
    msg.info(f"Vocabulary: {size:,} classes. Targets are per direction")
    if output is not None:
        msg.good(f"Saved: {output}")


def _row(name: str, p: Perplexity) -> tuple[str, ...]:
    values = (p.mean, p.forward, p.backward, p.mean_known, p.forward_known, p.backward_known)
    return (name, f"{p.targets:,}", f"{p.unk_share:.1%}", *(f"{value:.1f}" for value in values))

"""`python -m spacy elmo evaluate`: the perplexity of a biLM on text. `python -m spacy elmo score`: the
log-probabilities of the tokens of a text, and substitutes for the tokens."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .arguments import (
    GpuOption,
    JsonOutOption,
    LanguageOption,
    TokenizedOption,
    WeightsArgument,
    standard_input,
)
from .output import check_out, msg, reading_bar, write_json

if TYPE_CHECKING:
    import numpy as np
    from spacy.tokens import Doc

    from ..lab.language_model import Substitute, TokenScores
    from ..pretraining.config import Prepare


def evaluate_cli(
    source: WeightsArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="Held-out text: file, folder or glob pattern")
    ],
    out: JsonOutOption = None,
    lang: LanguageOption = None,
    tokenized: TokenizedOption = False,
    gpu_id: GpuOption = -1,
) -> None:
    """Compute the perplexity of a biLM on held-out text.

    The perplexity is computed with the full softmax. Lower is better.

    In the forward direction, the model predicts each word and the end of each sentence from the words before.
    In the backward direction, the model predicts each word and the start of each sentence from the words
    after. All words outside the vocabulary count as one class, <UNK>, so compare only models with the same
    vocabulary. The column "No <UNK>" and the columns to its right do not count the <UNK> targets. With
    --tokenized, each line is a sentence.
    """
    from ..bilm.weights import Weights
    from ..pretraining.distributed import device
    from ..pretraining.perplexity import evaluate
    from ..text.reading import text_files
    from ..weight_names import find_weights

    weights = Weights.load(find_weights(source))
    settings = _tokenizer_settings(weights.card, lang, tokenized)
    check_out(out, ".json")
    size, files = len(weights.vocabulary), text_files(text)
    with reading_bar(files):
        tally = evaluate(weights, files, settings, device=device(gpu_id))
    result = tally.perplexity(size)
    perplexities = (
        result.mean, result.forward, result.backward,
        result.mean_known, result.forward_known, result.backward_known,
    )  # fmt: skip
    row = (f"{result.targets:,}", f"{result.unk_share:.1%}", *(f"{x:.1f}" for x in perplexities))
    directions = ("Forward", "Backward")
    header = ("Targets", "<UNK>", "Perplexity", *directions, "No <UNK>", *directions)
    msg.table([row], header=header, aligns=["r"] * len(row))
    msg.info(
        f"Vocabulary: {size:,} classes. The column Targets counts the targets of one direction"
    )
    write_json(out, dataclasses.asdict(result))


def score_cli(
    source: WeightsArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="File, folder or glob pattern; -: standard input")
    ],
    substitutes: Annotated[
        int,
        typer.Option("--substitutes", "-n", min=0, help="Most probable words to show per token"),
    ] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="Print the scores as JSON lines: one object per document")
    ] = False,
    lang: LanguageOption = None,
    tokenized: TokenizedOption = False,
) -> None:
    """Show the log-probability of every token of a text.

    The forward log-probability of a token depends on the words before the token, the backward log-probability
    on the words after the token. Both are in nats.

    A token is more probable if its log-probability is closer to 0. The log-probability of a word outside the
    vocabulary is unknown: the model only knows the probability of all such words together (with --json, the
    number is that of the class <UNK>). <S> is the start of a sentence and </S> the end of a sentence. The text
    is split into sentences by the same rule as in the command prepare.
    """
    import srsly

    from ..bilm.weights import Weights
    from ..lab.language_model import LanguageModel, docs_of
    from ..pipeline.encode.spans import sentence_spans
    from ..text.passages import Passage, passages
    from ..text.reading import text_files
    from ..weight_names import find_weights

    weights = Weights.load(find_weights(source))
    settings = _tokenizer_settings(weights.card, lang, tokenized)
    model = LanguageModel(weights, get_spans=sentence_spans)
    texts: Iterator[Passage]
    if text == "-":
        files = []
        texts = (Passage([line], is_tokenized=False) for _, line in standard_input() if line)
    else:
        files = text_files(text)
        texts = passages(files)
    # Results on the terminal show the progress themselves.
    with reading_bar(files, shown=not sys.stdout.isatty()):
        for doc in docs_of(texts, settings):
            scores = model.score(doc)
            words = model.all_substitutes(doc, substitutes) if substitutes else None
            if json:
                typer.echo(srsly.json_dumps(_record(doc, scores, words)))
            else:
                _show(doc, scores, words)


def _tokenizer_settings(card: Mapping[str, Any], lang: str | None, tokenized: bool) -> Prepare:
    from ..pretraining.config import Prepare

    if tokenized:
        return Prepare(tokenized=True)
    return Prepare.of_card(card) if lang is None else Prepare(lang=lang)


def _record(
    doc: Doc, scores: TokenScores, substitutes: list[list[Substitute]] | None
) -> dict[str, Any]:
    def rounded(values: np.ndarray) -> list[float]:
        return [round(float(value), 4) for value in values]

    record = {
        "tokens": [token.text for token in doc],
        "forward": rounded(scores.forward),
        "backward": rounded(scores.backward),
        "unknown": scores.unknown.tolist(),
        "sentence_ends": rounded(scores.closing[0]),
        "sentence_starts": rounded(scores.closing[1]),
    }
    return record if substitutes is None else {**record, "substitutes": substitutes}


def _show(doc: Doc, scores: TokenScores, substitutes: list[list[Substitute]] | None) -> None:
    rows: list[tuple[str, ...]] = []
    for sentence, ending, start in zip(doc.sents, *scores.closing, strict=True):
        rows.append(("<S>", "", f"{start:.2f}", ""))
        for i in range(sentence.start, sentence.end):
            both = (f"{scores.forward[i]:.2f}", f"{scores.backward[i]:.2f}")
            words = (
                " ".join(substitute.word for substitute in substitutes[i]) if substitutes else ""
            )
            rows.append((doc[i].text, *(("unknown",) * 2 if scores.unknown[i] else both), words))
        rows.append(("</S>", f"{ending:.2f}", "", ""))
    n = 4 if substitutes else 3
    header = ("Token", "Forward", "Backward", "Substitutes")[:n]
    msg.table([row[:n] for row in rows], header=header, aligns=["l", "r", "r", "l"][:n])

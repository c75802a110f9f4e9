"""`python -m spacy elmo score`: show the log-probabilities of the tokens of a text, and substitutes for the
tokens."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import srsly
import typer
from wasabi import msg

from .arguments import TokenizedOption, TokenizerOption, WeightsArgument
from .errors import report_errors
from .progress import reading_bar
from .settings import tokenizer_settings
from .standard_input import standard_input

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from ..lab.language_model import Substitute, TokenScores
    from ..pretraining.config import Prepare


def score_cli(
    source: WeightsArgument,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="Text: file, folder or glob pattern, or - for standard input"
        ),
    ],
    substitutes: Annotated[
        int,
        typer.Option(
            "--substitutes",
            "-n",
            min=0,
            help="Number of substitutes to show for each token. Substitutes are the words that are most probable in the"
            " context of the token",
        ),
    ] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="Print the scores as JSON lines: one object per document")
    ] = False,
    lang: TokenizerOption = None,
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
    with report_errors():
        from ..bilm.weights import Weights
        from ..lab.language_model import LanguageModel
        from ..pipeline.encode.spans import sentence_spans
        from ..weight_names import find_weights

        weights = Weights.load(find_weights(source))
        docs = _docs(text, tokenizer_settings(weights.card, lang, tokenized))
        model = LanguageModel(weights, get_spans=sentence_spans)
        # No bar if the results appear on the terminal, because the results show the progress.
        with reading_bar(lambda: _files(text), quiet=sys.stdout.isatty()):
            for doc in docs:
                scores = model.score(doc)
                words = model.all_substitutes(doc, substitutes) if substitutes else None
                if json:
                    typer.echo(srsly.json_dumps(_record(doc, scores, words)))
                else:
                    _show(doc, scores, words)


def _files(text: str) -> list[Path]:
    from ..text.files import text_files

    return [] if text == "-" else text_files(text)


def _docs(text: str, settings: Prepare) -> Iterator[Doc]:
    """Yield a Doc for each document of the files `text`, or of the standard input if `text` is "-". The
    tokens and sentences are the same as in the command `prepare`."""
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

    from ..pretraining.corpus.tokenize import DocumentTokenizer
    from ..text.documents import Document, documents

    tokenize, vocab = DocumentTokenizer(settings), Vocab()
    texts: Iterator[Document]
    if text == "-":
        texts = (Document([line], is_tokenized=False) for _, line in standard_input() if line)
    else:
        texts = documents(_files(text), settings.encoding_errors)
    for document in texts:
        piece = tokenize([document])
        if not len(piece.words):
            continue
        starts = np.zeros(len(piece.words), dtype=bool)
        starts[np.cumsum(piece.lengths) - piece.lengths] = True
        words = [piece.types[word] for word in piece.words.tolist()]
        yield Doc(vocab, words=words, sent_starts=starts.tolist())


def _record(
    doc: Doc, scores: TokenScores, substitutes: list[list[Substitute]] | None
) -> dict[str, Any]:
    record = {
        "tokens": [token.text for token in doc],
        "forward": _rounded(scores.forward),
        "backward": _rounded(scores.backward),
        "unknown": scores.unknown.tolist(),
        "sentence_ends": _rounded(scores.closing[0]),
        "sentence_starts": _rounded(scores.closing[1]),
    }
    return record if substitutes is None else {**record, "substitutes": substitutes}


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), 4) for value in values]


def _show(doc: Doc, scores: TokenScores, substitutes: list[list[Substitute]] | None) -> None:
    header = ["Token", "Forward", "Backward"] + (["Substitutes"] if substitutes else [])
    rows: list[list[str]] = []
    for sentence, ending, start in zip(doc.sents, *scores.closing, strict=True):
        rows.append(["<S>", "", f"{start:.2f}"])
        for i in range(sentence.start, sentence.end):
            both = (f"{scores.forward[i]:.2f}", f"{scores.backward[i]:.2f}")
            rows.append([doc[i].text, *(("unknown",) * 2 if scores.unknown[i] else both)])
            if substitutes:
                rows[-1].append(" ".join(substitute.word for substitute in substitutes[i]))
        rows.append(["</S>", f"{ending:.2f}", ""])
    rows = [row + [""] * (len(header) - len(row)) for row in rows]
    msg.table(rows, header=header, divider=True, aligns=["l", "r", "r", "l"][: len(header)])

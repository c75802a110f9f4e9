"""`python -m spacy elmo score`: how expected each token of a text is, and what would fit in its place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import srsly
import typer
from wasabi import msg

from .errors import one_message
from .evaluate import GpuOption, LangOption, TokenizedOption, WeightsArgument, settings_for

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from ..analysis.language_model import Substitute, TokenScores
    from ..pretrain.config import Prepare


def score_cli(
    weights_name: WeightsArgument,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="File, directory or glob pattern; - for standard input"
        ),
    ],
    substitutes: Annotated[
        int, typer.Option("--substitutes", "-n", min=0, help="Best words in each token's place")
    ] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON, a line for each document")
    ] = False,
    lang: LangOption = None,
    tokenized: TokenizedOption = False,
    gpu_id: GpuOption = -1,
) -> None:
    """Log-probability of every token given the words before it (forward) and after it (backward), in nats.

    The nearer to 0, the more expected. A word outside the vocabulary is marked with *: its figures are those of <UNK>,
    which stands for all such words. <S> and </S> are the ends of a sentence; text is cut into sentences as in prepare.
    """
    with one_message():
        from ..analysis.language_model import LanguageModel
        from ..bilm.weights import Weights
        from ..pipeline.bundled import find_weights
        from ..pipeline.reading.spans import sentence_spans
        from ..pretrain.training.distributed import device

        weights = Weights.load(find_weights(weights_name))
        docs = _docs(text, settings_for(weights.card, lang, tokenized))
        model = LanguageModel(weights, get_spans=sentence_spans, device=device(gpu_id))
        for doc in docs:
            scores = model.score(doc)
            best = model.all_substitutes(doc, substitutes) if substitutes else None
            if json:
                typer.echo(srsly.json_dumps(_record(doc, scores, best)))
            else:
                _show(doc, scores, best)


def _docs(source: str, settings: Prepare) -> Iterator[Doc]:
    """A Doc for each document, with the words and the sentences of which `prepare` would make a corpus."""
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

    from ..pretrain.corpus.tokenize import DocumentTokenizer
    from ..text.documents import Document, documents
    from ..text.files import text_files

    cutter, vocab = DocumentTokenizer(settings), Vocab()
    found: Iterator[Document]
    if source == "-":
        found = (Document([line.strip()], words=False) for line in sys.stdin if line.strip())
    else:
        found = documents(text_files(source), settings.encoding_errors)
    for document in found:
        piece = cutter([document])
        if not len(piece.words):
            continue
        starts = np.zeros(len(piece.words), dtype=bool)
        starts[np.cumsum(piece.lengths) - piece.lengths] = True
        words = [piece.types[word] for word in piece.words.tolist()]
        yield Doc(vocab, words=words, sent_starts=starts.tolist())


def _record(doc: Doc, scores: TokenScores, best: list[list[Substitute]] | None) -> dict[str, Any]:
    record = {
        "tokens": [token.text for token in doc],
        "forward": _numbers(scores.forward),
        "backward": _numbers(scores.backward),
        "unknown": scores.unknown.tolist(),
        "sentence_ends": _numbers(scores.closing[0]),
        "sentence_starts": _numbers(scores.closing[1]),
    }
    return record if best is None else {**record, "substitutes": best}


def _numbers(values: np.ndarray) -> list[float]:
    return [round(float(value), 4) for value in values]


def _show(doc: Doc, scores: TokenScores, best: list[list[Substitute]] | None) -> None:
    header = ["Token", "Forward", "Backward"] + (["Substitutes"] if best else [])
    rows: list[list[str]] = []
    for sentence, ending, start in zip(doc.sents, *scores.closing, strict=True):
        rows.append(["<S>", "", f"{start:.2f}"])
        for i in range(sentence.start, sentence.end):
            name = doc[i].text + ("*" if scores.unknown[i] else "")
            rows.append([name, f"{scores.forward[i]:.2f}", f"{scores.backward[i]:.2f}"])
            if best:
                rows[-1].append(" ".join(substitute.word for substitute in best[i]))
        rows.append(["</S>", f"{ending:.2f}", ""])
    rows = [row + [""] * (len(header) - len(row)) for row in rows]
    msg.table(rows, header=header, divider=True, aligns=["l", "r", "r", "l"][: len(header)])

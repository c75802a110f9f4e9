"""`python -m spacy elmo probe`: what each layer of a biLM knows of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import srsly
import typer
from wasabi import msg

from ..files import atomic_file
from .corpus_arguments import SourceArgument
from .errors import one_message
from .evaluate import GpuOption
from .out_file import check_out_file

if TYPE_CHECKING:
    from ..analysis.probe.layers import LayerReader
    from ..analysis.probe.part_of_speech import TagScores
    from ..analysis.probe.word_sense import SenseScores
    from ..corpora.senses import SenseSentence

probe_cli = typer.Typer(
    name="probe",
    help="Show what each layer of a biLM knows: layer 0 sees the word alone, the others its sentence.",
    no_args_is_help=True,
)


class Column(str, Enum):
    """Of CoNLL-U."""

    upos = "upos"
    xpos = "xpos"


OutOption = Annotated[Path | None, typer.Option("--out", "-o", help="JSON file for the figures")]


@probe_cli.command("word-sense")
def word_sense_cli(
    source: SourceArgument,
    train: Annotated[
        str, typer.Argument(metavar="TRAIN", help="Annotated text: JSONL file, or glob pattern")
    ],
    tests: Annotated[
        list[Path], typer.Argument(metavar="TEST...", help="Annotated text: JSONL files")
    ],
    first_senses: Annotated[
        Path | None,
        typer.Option(help="WordNet's index.sense, for words that do not occur in TRAIN"),
    ] = None,
    out: OutOption = None,
    gpu_id: GpuOption = -1,
) -> None:
    """Word senses by nearest neighbour, as table 5 of Peters et al. (2018): F1 in %.

    In each layer a word gets the sense whose mean vector in TRAIN is nearest, among those that its lemma has there with
    its part of speech. A word without any there gets WordNet's first sense, with --first-senses; otherwise no answer.
    A record of a file is {"tokens": [...], "sense": [WordNet's sense key, or null, for each token]}.
    """
    with one_message():
        _check(out, gpu_id)
        from ..analysis.probe.word_sense import NearestSense
        from ..corpora.senses import read_first_senses, read_senses
        from ..text.files import text_files

        first = None if first_senses is None else read_first_senses(first_senses)
        files = text_files(train)
        texts = [_annotated(test) for test in tests]
        probe = NearestSense(_reader(source), read_senses(files), first)
        answers = [probe.answer(sentences) for sentences in texts]
        total = sum(answers[1:], start=answers[0]).scores()
        scores = [answer.scores() for answer in answers]
        if out is not None:
            by_file = {str(test): asdict(s) for test, s in zip(tests, scores, strict=True)}
            with atomic_file(out) as partial:
                srsly.write_json(partial, {**asdict(total), "files": by_file})
    _show_senses([*(test.stem for test in tests), "All"], [*scores, total])
    if out is not None:
        msg.good(f"Saved: {out}")


@probe_cli.command("part-of-speech")
def part_of_speech_cli(
    source: SourceArgument,
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="CoNLL-U file to learn from")],
    dev: Annotated[
        Path, typer.Argument(metavar="DEV", help="CoNLL-U file that chooses among the epochs")
    ],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="CoNLL-U file to compare on")],
    column: Annotated[
        Column, typer.Option(help="Universal tags, or those of the language")
    ] = Column.upos,
    seed: Annotated[int, typer.Option(help="Of the order in which words are learnt")] = 0,
    out: OutOption = None,
    gpu_id: GpuOption = -1,
) -> None:
    """Parts of speech by a linear classifier, as table 6 of Peters et al. (2018): accuracy in %.

    In each layer, softmax regression from the vector of a word to its tag; the biLM stays as it is.
    """
    with one_message():
        _check(out, gpu_id)
        from ..analysis.probe.part_of_speech import probe_tags, read_tags

        texts = [read_tags(file, column.value) for file in (train, dev, test)]
        scores = probe_tags(_reader(source), *texts, seed=seed)
        if out is not None:
            with atomic_file(out) as partial:
                srsly.write_json(partial, asdict(scores))
    _show_tags(scores)
    if out is not None:
        msg.good(f"Saved: {out}")


def _check(out: Path | None, gpu_id: int) -> None:
    if gpu_id >= 0:
        from spacy import require_gpu

        require_gpu(gpu_id)
    if out is not None:
        check_out_file(out, "--out", force=True)


def _annotated(file: Path) -> list[SenseSentence]:
    from ..corpora.senses import read_senses

    sentences = list(read_senses([file]))
    if not any(sentence.instances for sentence in sentences):
        raise ValueError(f"{file}: no word in it has a sense; nothing to compare with")
    return sentences


def _reader(source: str) -> LayerReader:
    from ..analysis.probe.layers import LayerReader
    from ..corpora.pipelines import load_pipeline

    nlp, _ = load_pipeline(source, tokenized=True)
    return LayerReader(nlp)


def _show_senses(names: list[str], scores: list[SenseScores]) -> None:
    rows = [
        (f"Layer {layer}", *map(_percent, f1))
        for layer, f1 in enumerate(zip(*(s.layers for s in scores), strict=True))
    ]
    rows.append(("Most frequent sense", *(_percent(s.most_frequent) for s in scores)))
    if firsts := [_percent(s.first) for s in scores if s.first is not None]:
        rows.append(("WordNet's first sense", *firsts))
    rows += [
        ("Words", *(f"{s.instances:,}" for s in scores)),
        ("  that occur in TRAIN", *(f"{s.seen:,}" for s in scores)),
        ("  with several senses", *(f"{s.ambiguous:,}" for s in scores)),
    ]
    _table(("F1 in %", *names), rows)


def _show_tags(scores: TagScores) -> None:
    rows = [
        (f"Layer {layer}", _percent(dev), _percent(test))
        for layer, (dev, test) in enumerate(zip(scores.dev, scores.layers, strict=True))
    ]
    rows.append(("Most frequent tag", "", _percent(scores.most_frequent)))
    _table(("Accuracy in %", "DEV", "TEST"), rows)
    msg.info(f"{scores.words:,} words of TEST, {scores.tags} tags")


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    msg.table(rows, header=header, divider=True, aligns=["l"] + ["r"] * (len(header) - 1))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"

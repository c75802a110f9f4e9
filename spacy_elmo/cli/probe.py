"""`python -m spacy elmo probe`: test how much each layer of a biLM knows about word senses and parts of
speech."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from ..files import check_output_file
from .arguments import GpuOption, PipelineArgument, QuietOption
from .errors import report_errors
from .output_files import write_json
from .pipelines import load_pipeline, use_gpu
from .progress import progress_bar

if TYPE_CHECKING:
    from tqdm import tqdm

    from ..lab.corpora.senses import SenseSentence
    from ..lab.probe.layers import LayerReader
    from ..lab.probe.part_of_speech import TagScores
    from ..lab.probe.word_sense import SenseScores

probe_cli = typer.Typer(
    name="probe",
    help="Probe each layer for word senses and parts of speech.",
    no_args_is_help=True,
)


class ColumnChoice(str, Enum):
    """Choices of `--column`."""

    upos = "upos"
    xpos = "xpos"


OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="JSON file to write the results to")
]


@probe_cli.command("word-sense")
def word_sense_cli(
    source: PipelineArgument,
    train: Annotated[
        str,
        typer.Argument(
            metavar="TRAIN", help="Text with annotated senses: .jsonl file or glob pattern"
        ),
    ],
    tests: Annotated[
        list[Path],
        typer.Argument(metavar="TEST...", help="Texts with annotated senses: .jsonl files"),
    ],
    first_senses: Annotated[
        Path | None,
        typer.Option(help="WordNet's file index.sense, for words that do not occur in TRAIN"),
    ] = None,
    out: OutOption = None,
    gpu_id: GpuOption = -1,
    quiet: QuietOption = False,
) -> None:
    """Predict word senses by nearest neighbor.

    The table shows the F1 of each layer in %, as in table 5 of Peters et al. (2018).

    For each annotated word, the command considers only the senses of the word's lemma and part of speech. It
    predicts the sense whose mean vector in TRAIN is nearest. For a word that does not occur in TRAIN, the
    command predicts the first sense in --first-senses. Without this option, it predicts no sense for such a
    word.

    Each line of TRAIN and TEST is a JSON object with two lists: "tokens", and "sense" (a WordNet sense key or
    null for each token).
    """
    with report_errors():
        _check(out, gpu_id)
        from ..lab.corpora.senses import read_first_senses, read_senses
        from ..lab.probe.word_sense import NearestSense
        from ..text.files import text_files

        first = None if first_senses is None else read_first_senses(first_senses)
        files = text_files(train)
        texts = [_annotated(test) for test in tests]
        # Counting the sentences takes little time, compared with computing their layers.
        total = sum(map(len, texts)) + sum(1 for _ in read_senses(files))
        with progress_bar("sentences", total=total, quiet=quiet) as bar:
            probe = NearestSense(_reader(source, bar), read_senses(files), first)
            answers = [probe.answer(sentences) for sentences in texts]
        all_answers = sum(answers[1:], start=answers[0]).scores()
        scores = [answer.scores() for answer in answers]
        if out is not None:
            by_file = {str(test): asdict(s) for test, s in zip(tests, scores, strict=True)}
            write_json(out, {**asdict(all_answers), "files": by_file})
    _show_senses([*(test.stem for test in tests), "All"], [*scores, all_answers])
    if out is not None:
        msg.good(f"Saved: {out}")


@probe_cli.command("part-of-speech")
def part_of_speech_cli(
    source: PipelineArgument,
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="CoNLL-U file to train on")],
    dev: Annotated[
        Path, typer.Argument(metavar="DEV", help="CoNLL-U file on which to choose the best epoch")
    ],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="CoNLL-U file to test on")],
    column: Annotated[
        ColumnChoice,
        typer.Option(help="Tags to predict: universal (upos) or language-specific (xpos)"),
    ] = ColumnChoice.upos,
    seed: Annotated[int, typer.Option(help="Random seed for the order of the training words")] = 0,
    out: OutOption = None,
    gpu_id: GpuOption = -1,
    quiet: QuietOption = False,
) -> None:
    """Predict parts of speech by a linear classifier.

    The table shows the accuracy of each layer in %, as in table 6 of Peters et al. (2018).

    For each layer, the command trains a softmax regression that predicts the tag of a word from its vector.
    The weights of the biLM do not change.
    """
    with report_errors():
        _check(out, gpu_id)
        from ..lab.probe.part_of_speech import probe_tags, read_tags

        texts = [read_tags(file, column.value) for file in (train, dev, test)]
        n_sentences = sum(len(text.sentences) for text in texts)
        with progress_bar("sentences", total=n_sentences, quiet=quiet) as bar:
            reader = _reader(source, bar)
            with progress_bar("layers", total=reader.layers, quiet=quiet) as layer_bar:
                scores = probe_tags(reader, *texts, seed=seed, progress=layer_bar.update)
        if out is not None:
            write_json(out, asdict(scores))
    _show_tags(scores)
    if out is not None:
        msg.good(f"Saved: {out}")


def _check(out: Path | None, gpu_id: int) -> None:
    use_gpu(gpu_id)
    if out is not None:
        check_output_file(out, force=True)


def _annotated(file: Path) -> list[SenseSentence]:
    from ..lab.corpora.senses import read_senses

    sentences = list(read_senses([file]))
    if not any(sentence.instances for sentence in sentences):
        raise ValueError(f'{file}: no word has a sense. Annotate some words in the field "sense"')
    return sentences


def _reader(source: str, bar: tqdm) -> LayerReader:
    from ..lab.probe.layers import LayerReader

    return LayerReader(load_pipeline(source, lang=None, tokenized=True), bar.update)


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

"""`python -m spacy elmo probe`: test how much each layer of a biLM knows about word senses and parts of
speech."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from wasabi import msg

from ..files import check_output_file
from .arguments import PipelineArgument
from .errors import report_errors
from .output_files import write_json
from .pipelines import load_pipeline
from .progress import progress_bar

probe_cli = typer.Typer(
    name="probe",
    help="Probe each layer for word senses and parts of speech.",
    no_args_is_help=True,
)

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
        from ..lab.corpora.senses import read_first_senses, read_senses
        from ..lab.probes import SenseProbe, SenseScores
        from ..text.files import text_files

        _check(out)
        first = None if first_senses is None else read_first_senses(first_senses)
        files = text_files(train)
        texts = {test: list(read_senses([test])) for test in tests}
        for test, sentences in texts.items():
            if not any(sentence.instances for sentence in sentences):
                raise ValueError(f'{test}: no word has a sense. Annotate some in the field "sense"')
        # Counting the sentences takes little time, compared with computing their layers.
        total = sum(map(len, texts.values())) + sum(1 for _ in read_senses(files))
        with progress_bar("sentences", total=total) as bar:
            nlp = load_pipeline(source, lang=None, tokenized=True)
            probe = SenseProbe(nlp, read_senses(files), first, bar.update)
            answers = {test: probe.answer(sentences) for test, sentences in texts.items()}
        scores = {str(test): SenseScores.of(found) for test, found in answers.items()}
        together = SenseScores.of([answer for found in answers.values() for answer in found])
        _write(out, asdict(together) | {"files": {n: asdict(s) for n, s in scores.items()}})
    columns = {**{Path(name).stem: score for name, score in scores.items()}, "All": together}
    rows = [
        (f"Layer {layer}", *map(_percent, f1))
        for layer, f1 in enumerate(zip(*(s.layers for s in columns.values()), strict=True))
    ]
    rows.append(("Most frequent sense", *(_percent(s.most_frequent) for s in columns.values())))
    if first is not None:
        rows.append(("WordNet's first sense", *(_percent(s.first) for s in columns.values())))
    rows += [
        ("Words", *(f"{s.instances:,}" for s in columns.values())),
        ("  that occur in TRAIN", *(f"{s.seen:,}" for s in columns.values())),
        ("  with several senses", *(f"{s.ambiguous:,}" for s in columns.values())),
    ]
    _show(("F1 in %", *columns), rows, out)


@probe_cli.command("part-of-speech")
def part_of_speech_cli(
    source: PipelineArgument,
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="CoNLL-U file to train on")],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="CoNLL-U file to test on")],
    out: OutOption = None,
) -> None:
    """Predict universal parts of speech by a linear classifier.

    The table shows the accuracy of each layer in %, as in table 6 of Peters et al. (2018).

    For each layer, the command trains a logistic regression that predicts the tag of a word from its vector.
    The weights of the biLM do not change.
    """
    with report_errors():
        from ..lab.probes import probe_tags, read_tags

        _check(out)
        known, new = read_tags(train), read_tags(test)
        total = len(known.sentences) + len(new.sentences)
        with progress_bar("sentences", total=total) as bar:
            nlp = load_pipeline(source, lang=None, tokenized=True)
            scores = probe_tags(nlp, known, new, bar.update)
        _write(out, asdict(scores))
    rows = [(f"Layer {layer}", _percent(share)) for layer, share in enumerate(scores.layers)]
    rows.append(("Most frequent tag", _percent(scores.most_frequent)))
    _show(("Accuracy in %", f"{scores.words:,} words, {scores.tags} tags"), rows, out)


def _check(out: Path | None) -> None:
    if out is not None:
        check_output_file(out, force=True)


def _write(out: Path | None, results: Any) -> None:
    if out is not None:
        write_json(out, results)


def _show(header: tuple[str, ...], rows: Sequence[tuple[str, ...]], out: Path | None) -> None:
    msg.table(rows, header=header, divider=True, aligns=["l"] + ["r"] * (len(header) - 1))
    if out is not None:
        msg.good(f"Saved: {out}")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"

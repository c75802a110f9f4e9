"""`python -m spacy elmo probe`: test how much each layer of a biLM knows about word senses and parts of
speech."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .arguments import JsonOutOption, PipelineArgument, open_pipeline
from .output import check_out, msg, progress_bar, write_json

probe_cli = typer.Typer(
    name="probe",
    help="Probe each layer for word senses and parts of speech.",
    no_args_is_help=True,
)


@probe_cli.command("word-sense")
def word_sense_cli(
    source: PipelineArgument,
    train: Annotated[
        str, typer.Argument(metavar="TRAIN", help="Text with senses: .jsonl file or glob pattern")
    ],
    tests: Annotated[
        list[Path], typer.Argument(metavar="TEST...", help="Texts with senses: .jsonl files")
    ],
    first_senses: Annotated[
        Path | None,
        typer.Option(help="WordNet's file index.sense, for words that are not in TRAIN"),
    ] = None,
    out: JsonOutOption = None,
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
    from ..lab.probes import SenseProbe, SenseScores
    from ..lab.senses import read_first_senses, read_senses
    from ..text.reading import text_files

    check_out(out, ".json")
    first = None if first_senses is None else read_first_senses(first_senses)
    files = text_files(train)
    texts = {test: list(read_senses([test])) for test in tests}
    for test, sentences in texts.items():
        if not any(sentence.instances for sentence in sentences):
            raise ValueError(f'{test}: no word has a sense. Annotate some in the field "sense"')
    # Counting the sentences takes little time, compared with computing their layers.
    total = sum(map(len, texts.values())) + sum(1 for _ in read_senses(files))
    with progress_bar("sentences", total) as bar:
        nlp = open_pipeline(source, tokenized=True)
        probe = SenseProbe(nlp, read_senses(files), first, bar.update)
        answers = {str(test): probe.answer(sentences) for test, sentences in texts.items()}
    scores = {test: SenseScores.of(found) for test, found in answers.items()}
    together = SenseScores.of([answer for found in answers.values() for answer in found])
    columns = [*scores.values(), together]
    rows = [
        (f"Layer {layer}", *map(_percent, f1))
        for layer, f1 in enumerate(zip(*(s.layers for s in columns), strict=True))
    ]
    rows.append(("Most frequent sense", *(_percent(s.most_frequent) for s in columns)))
    if first is not None:
        rows.append(("WordNet's first sense", *(_percent(s.first) for s in columns)))
    rows += [
        ("Words", *(f"{s.instances:,}" for s in columns)),
        ("  that occur in TRAIN", *(f"{s.seen:,}" for s in columns)),
        ("  with several senses", *(f"{s.ambiguous:,}" for s in columns)),
    ]
    _show(("F1 in %", *(Path(name).stem for name in scores), "All"), rows)
    files_scores = {name: asdict(score) for name, score in scores.items()}
    write_json(out, asdict(together) | {"files": files_scores})


@probe_cli.command("part-of-speech")
def part_of_speech_cli(
    source: PipelineArgument,
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="CoNLL-U file to train on")],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="CoNLL-U file to test on")],
    out: JsonOutOption = None,
) -> None:
    """Predict universal parts of speech by a linear classifier.

    The table shows the accuracy of each layer in %, as in table 6 of Peters et al. (2018).

    For each layer, the command trains a logistic regression that predicts the tag of a word from its vector.
    The weights of the biLM do not change.
    """
    from ..lab.probes import probe_tags, read_tags

    check_out(out, ".json")
    known, new = read_tags(train), read_tags(test)
    with progress_bar("sentences", len(known.sentences) + len(new.sentences)) as bar:
        nlp = open_pipeline(source, tokenized=True)
        scores = probe_tags(nlp, known, new, bar.update)
    rows = [(f"Layer {layer}", _percent(share)) for layer, share in enumerate(scores.layers)]
    rows.append(("Most frequent tag", _percent(scores.most_frequent)))
    _show(("Accuracy in %", f"{scores.words:,} words, {scores.tags} tags"), rows)
    write_json(out, asdict(scores))


def _show(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    msg.table(rows, header=header, aligns=["l"] + ["r"] * (len(header) - 1))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"

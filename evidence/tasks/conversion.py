"""The parts that all converters share: labelled JSONL in, binary Docs out, one message for an error."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from spacy.tokens import Doc, DocBin

from spacy_elmo.text.documents import json_lines

Record = TypeVar("Record")


def read_records(
    path: Path, parse: Callable[[Any], Record], kind: str, layout: str
) -> list[Record]:
    """Return the records of a JSONL file, empty lines left out.

    Args:
        path: the file, in UTF-8.
        parse: makes a record of a parsed line.
        kind: the name of a record, for the error message.
        layout: the expected form of a line, for the error message.

    Raises:
        ValueError: a line that `parse` refuses, named by file and line, or a file without records.
    """
    records = list(json_lines(path, parse, "strict"))
    if not records:
        raise ValueError(f"{path}: no {kind} in it; expected lines of {layout}")
    return records


def write_docs(docs: Iterable[Doc], out: Path) -> None:
    """Write Docs to a file for `spacy.Corpus.v1`, and create its folder if it does not exist."""
    out.parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=docs).to_disk(out)


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return the arguments that all converters take: IN.jsonl, OUT.spacy and --lang."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.jsonl")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument("--lang", default="en", help="language of the blank pipeline")
    return parser


def call(convert: Callable[..., NamedTuple], *args: Any, **options: Any) -> dict[str, int]:
    """Call a converter and return its counts by name; a bad file ends the program with one message and exit code 1."""
    try:
        return convert(*args, **options)._asdict()
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error

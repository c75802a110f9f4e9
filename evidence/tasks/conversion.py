"""The parts that all converters of labelled JSONL to `.spacy` files share."""

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
    """Return the records of a JSONL file. Empty lines are skipped.

    Args:
        path: the file, in UTF-8.
        parse: function that makes a record from a parsed line.
        kind: the name of a record, for the error message.
        layout: the expected form of a line, for the error message.

    Raises:
        ValueError: `parse` raises an error for a line (the message names file and line), or there are no records.
    """
    records = list(json_lines(path, parse, "strict"))
    if not records:
        raise ValueError(f"{path} has no {kind}; it needs lines such as {layout}")
    return records


def write_docs(docs: Iterable[Doc], out: Path) -> None:
    """Write Docs to a file for `spacy.Corpus.v1`. Its folder is created if it does not exist."""
    out.parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=docs).to_disk(out)


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the arguments of all converters: IN.jsonl, OUT.spacy and --lang."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.jsonl")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument("--lang", default="en", help="language of the tokenizer")
    return parser


def run(convert: Callable[..., NamedTuple], parser: argparse.ArgumentParser, summary: str) -> None:
    """Call a converter with the arguments of the command line, and print its counts.

    Args:
        convert: a function that takes all arguments of the parser by their names.
        summary: what is printed, with `out` and the names of the counts in braces.

    Raises:
        SystemExit: the converter raises an error. The program ends with a message and exit code 1.
    """
    args = vars(parser.parse_args())
    try:
        counts = convert(**args)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(summary.format(out=args["out"], **counts._asdict()))

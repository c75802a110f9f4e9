"""The command line of the converters of labelled JSONL to `.spacy` files."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import spacy
import srsly
from spacy.language import Language
from spacy.tokens import Doc, DocBin


def run(
    convert: Callable[[Iterable[Any], Language], Iterable[Doc]], description: str | None
) -> None:
    """Convert IN.jsonl to OUT.spacy, and print the number of Docs.

    Args:
        convert: function that makes Docs from the records of a file.
    """
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.jsonl")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument("--lang", default="en", help="language of the tokenizer")
    parser.add_argument("--without", type=Path, metavar="OTHER.jsonl", help="leave out its records")
    args = parser.parse_args()
    records = list(srsly.read_jsonl(args.path))
    if args.without:
        # The same text may have other labels there.
        known = {_text(record) for record in srsly.read_jsonl(args.without)}
        records = [record for record in records if _text(record) not in known]
    docs = DocBin(docs=convert(records, spacy.blank(args.lang)))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    docs.to_disk(args.out)
    print(f"{args.out}: {len(docs)} Docs")


def _text(record: dict[str, Any]) -> tuple[str, ...]:
    return tuple(" ".join(value.split()) for value in record.values() if isinstance(value, str))

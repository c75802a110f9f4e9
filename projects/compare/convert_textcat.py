"""Convert labelled texts in JSONL to Docs for `spacy train`.

    python convert_textcat.py IN.jsonl OUT.spacy

A line is {"text": "...", "label": "..."}; other keys are ignored. Every Doc gets all labels of the file: its own label
has the value 1.0, the others have 0.0.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.tokens import DocBin


class LabelledText(NamedTuple):
    """A text and its label."""

    text: str
    label: str


class Counts(NamedTuple):
    """Numbers of Docs, tokens and labels that a conversion has written."""

    docs: int
    tokens: int
    labels: int


def read_jsonl(path: Path) -> Iterator[LabelledText]:
    """Read the labelled texts of a file. Empty lines are skipped.

    Raises:
        ValueError: a line is invalid, or there is no text. The message names the file and the line.
    """
    empty = True
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parsed(line, f"{path}:{number}")
                    empty = False
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error}); save it as UTF-8 first") from error
    if empty:
        raise ValueError(
            f'{path} has no text; it needs lines such as {{"text": ..., "label": ...}}'
        )


def _parsed(line: str, where: str) -> LabelledText:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: {line.strip()[:80]!r} is not JSON ({error})") from error
    for key in ("text", "label"):
        value = record.get(key) if isinstance(record, dict) else None
        if not isinstance(value, str) or not value.strip():
            raise ValueError(
                f"{where}: {key} is {value!r}, but a line needs"
                ' {"text": ..., "label": ...} with two strings that are not empty'
            )
    return LabelledText(record["text"], record["label"])


def convert(path: Path, out: Path, *, lang: str = "en") -> Counts:
    """Convert one file with the tokenizer of a language, and return the counts."""
    texts = list(read_jsonl(path))
    labels = sorted({label for _, label in texts})
    nlp = spacy.blank(lang)
    docs = DocBin()
    tokens = 0
    for text, label in texts:
        doc = nlp.make_doc(text)
        # A Doc needs all labels, because spaCy treats a missing label as unknown, not as false.
        doc.cats = {known: float(known == label) for known in labels}
        docs.add(doc)
        tokens += len(doc)
    out.parent.mkdir(parents=True, exist_ok=True)
    docs.to_disk(out)
    return Counts(docs=len(docs), tokens=tokens, labels=len(labels))


def main() -> None:
    """Convert a file and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.jsonl")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument("--lang", default="en", help="language whose tokenizer splits the texts")
    args = parser.parse_args()
    try:
        counts = convert(args.path, args.out, lang=args.lang)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(f"{args.out}: {counts.docs} Docs, {counts.tokens} tokens, {counts.labels} labels")


if __name__ == "__main__":
    main()

"""Convert labelled texts in JSONL to the binary Docs that `spacy train` reads.

    python convert_textcat.py IN.jsonl OUT.spacy

A line is {"text": "...", "label": "..."}; other keys are ignored. Every Doc gets all labels of the file: its own with
1.0, the others with 0.0.
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
    """Numbers of what a conversion wrote."""

    docs: int
    tokens: int
    labels: int


def read_jsonl(path: Path) -> Iterator[LabelledText]:
    """Read the labelled texts of a file. Empty lines are skipped.

    Raises:
        ValueError: a line is invalid, or there is no text; the message names file and line.
    """
    empty = True
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parsed(line, f"{path}:{number}")
                    empty = False
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error}); save it as UTF-8 first") from error
    if empty:
        raise ValueError(f'{path}: no text in it; expected lines of {{"text": ..., "label": ...}}')


def _parsed(line: str, where: str) -> LabelledText:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: not JSON ({error}): {line.strip()[:80]!r}") from error
    for key in ("text", "label"):
        value = record.get(key) if isinstance(record, dict) else None
        if not isinstance(value, str) or not value.strip():
            raise ValueError(
                f'{where}: expected {{"text": ..., "label": ...}} with two strings that are not empty; '
                f"{key} is {value!r}"
            )
    return LabelledText(record["text"], record["label"])


def convert(path: Path, out: Path, *, lang: str = "en") -> Counts:
    """Convert one file, tokenized by the blank pipeline of a language, and return counts of what was written."""
    texts = list(read_jsonl(path))
    labels = sorted({label for _, label in texts})
    nlp = spacy.blank(lang)
    docs = DocBin()
    tokens = 0
    for text, label in texts:
        doc = nlp.make_doc(text)
        # All labels, because spaCy treats a label that a Doc does not name as unknown, not as absent.
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

"""Turn labelled pairs of sentences in JSONL into the binary Docs that the nli configs read.

    python scripts/convert_nli.py IN.jsonl OUT.spacy

A line is {"premise": "...", "hypothesis": "...", "label": "..."}; other keys are left out. A pair becomes one Doc: the
premise, a line break, the hypothesis. Every Doc gets all labels of the file: its own with 1.0, the others with 0.0.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.tokens import DocBin

from spacy_elmo.text.documents import json_lines


class LabelledPair(NamedTuple):
    """Two sentences and the one label that they have."""

    premise: str
    hypothesis: str
    label: str


class Counts(NamedTuple):
    """What a conversion wrote."""

    docs: int
    tokens: int
    labels: int


def read_jsonl(path: Path) -> list[LabelledPair]:
    """The labelled pairs of a file. Empty lines are passed over.

    Raises:
        ValueError: a line that cannot be right, or no pair at all; it names file and line.
    """
    found = list(json_lines(path, _parsed, "strict"))
    if not found:
        raise ValueError(
            f"{path}: no pair in it; expected lines of "
            '{"premise": ..., "hypothesis": ..., "label": ...}'
        )
    return found


def _parsed(record: Any) -> LabelledPair:
    for key in LabelledPair._fields:
        value = record.get(key) if isinstance(record, dict) else None
        if not isinstance(value, str) or not value.strip():
            raise ValueError(
                f'expected {{"premise": ..., "hypothesis": ..., "label": ...}} with three strings '
                f"that are not empty; {key} is {value!r}"
            )
    # One space for whitespace of any kind: the only line break of the Doc is that between the two.
    return LabelledPair(*(" ".join(record[key].split()) for key in LabelledPair._fields))


def convert(path: Path, out: Path, *, lang: str = "en") -> Counts:
    """Convert one file, tokenized by the blank pipeline of a language, and say what was written."""
    pairs = read_jsonl(path)
    labels = sorted({pair.label for pair in pairs})
    nlp = spacy.blank(lang)
    docs = DocBin()
    tokens = 0
    for premise, hypothesis, label in pairs:
        doc = nlp.make_doc(f"{premise}\n{hypothesis}")
        # All of them: a label that a Doc does not name counts as unknown there, not as absent.
        doc.cats = {known: float(known == label) for known in labels}
        docs.add(doc)
        tokens += len(doc)
    out.parent.mkdir(parents=True, exist_ok=True)
    docs.to_disk(out)
    return Counts(docs=len(docs), tokens=tokens, labels=len(labels))


def main() -> None:
    """Parse, convert, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.jsonl")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument(
        "--lang", default="en", help="language whose tokenizer splits the sentences"
    )
    args = parser.parse_args()
    try:
        counts = convert(args.path, args.out, lang=args.lang)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(f"{args.out}: {counts.docs} Docs, {counts.tokens} tokens, {counts.labels} labels")


if __name__ == "__main__":
    main()

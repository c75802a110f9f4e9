"""Convert labelled pairs of sentences in JSONL to Docs for the nli configs.

    python -m tasks.nli.convert IN.jsonl OUT.spacy

A line is {"premise": "...", "hypothesis": "...", "label": "..."}; other keys are ignored. A pair becomes one Doc: the
premise, a line break, the hypothesis. Every Doc gets all labels of the file: its own label has the value 1.0, the
others have 0.0.
"""

from pathlib import Path
from typing import Any, NamedTuple

import spacy

from ..conversion import arguments, read_records, run, write_docs


class LabelledPair(NamedTuple):
    """Two sentences and their label."""

    premise: str
    hypothesis: str
    label: str


class Counts(NamedTuple):
    """Numbers of Docs, tokens and labels that were written."""

    docs: int
    tokens: int
    labels: int


def _parsed(record: Any) -> LabelledPair:
    for key in LabelledPair._fields:
        value = record.get(key) if isinstance(record, dict) else None
        if not isinstance(value, str) or not value.strip():
            raise ValueError(
                f'expected {{"premise": ..., "hypothesis": ..., "label": ...}} with three strings '
                f"that are not empty; {key} is {value!r}"
            )
    # All whitespace becomes single spaces, so that the only line break of the Doc is that between the two texts.
    return LabelledPair(*(" ".join(record[key].split()) for key in LabelledPair._fields))


def convert(path: Path, out: Path, *, lang: str = "en") -> Counts:
    """Convert one file with the tokenizer of a language, and return the counts."""
    layout = '{"premise": ..., "hypothesis": ..., "label": ...}'
    pairs = read_records(path, _parsed, "pair", layout)
    labels = sorted({pair.label for pair in pairs})
    nlp = spacy.blank(lang)
    docs = []
    for premise, hypothesis, label in pairs:
        doc = nlp.make_doc(f"{premise}\n{hypothesis}")
        # A Doc needs all labels, because spaCy treats a missing label as unknown, not as false.
        doc.cats = {known: float(known == label) for known in labels}
        docs.append(doc)
    write_docs(docs, out)
    return Counts(docs=len(docs), tokens=sum(map(len, docs)), labels=len(labels))


if __name__ == "__main__":
    run(convert, arguments(__doc__), "{out}: {docs} Docs, {tokens} tokens, {labels} labels")

"""Convert labelled texts in JSONL to Docs for `spacy train`.

    python convert_textcat.py IN.jsonl OUT.spacy

A line is {"text": "...", "label": "..."}; other keys are ignored. Every Doc gets all labels of the file: its own label
has the value 1.0, the others have 0.0.
"""

import argparse
from pathlib import Path

import spacy
import srsly
from spacy.tokens import DocBin


def main() -> None:
    """Convert a file and print the number of Docs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.jsonl")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument("--lang", default="en", help="language whose tokenizer splits the texts")
    args = parser.parse_args()
    records = list(srsly.read_jsonl(args.path))
    labels = sorted({record["label"] for record in records})
    nlp, docs = spacy.blank(args.lang), DocBin()
    for record in records:
        doc = nlp.make_doc(record["text"])
        # A Doc needs all labels, because spaCy treats a missing label as unknown, not as false.
        doc.cats = {label: float(label == record["label"]) for label in labels}
        docs.add(doc)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    docs.to_disk(args.out)
    print(f"{args.out}: {len(docs)} Docs, {len(labels)} labels")


if __name__ == "__main__":
    main()

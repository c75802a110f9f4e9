"""Convert IOB2 text to Docs for `spacy train`, one per sentence.

    python convert_ner.py IN.tsv OUT.spacy

A line is a token, a tab and a tag; an empty line ends a sentence. It does the same as
`spacy convert --converter ner --n-sents 1`, but it also accepts empty lines that contain a tab. The released WNUT17 has
such lines, and spaCy's command would join the sentences around them. An I-TYPE that continues no entity begins one.
"""

import argparse
import re
from pathlib import Path

from spacy.tokens import DocBin
from spacy.training.converters import conll_ner_to_docs

TAG = re.compile(r"O|[BILU]-\S+")


def convert(path: Path, out: Path) -> DocBin:
    """Write the Docs of a file, and return them.

    Raises:
        ValueError: the file is not UTF-8, has no sentence, or has a line that does not end with a tag or has another
            number of columns than the first.
    """
    try:
        text = re.sub(r"^[^\S\n]+$", "", path.read_text("utf-8-sig"), flags=re.MULTILINE)
        first = None
        for number, line in enumerate(text.split("\n"), 1):
            row = line.split()
            if row and not TAG.fullmatch(row[-1]):
                raise ValueError(
                    f"line {number} ends with {row[-1]!r}. Expected: O, B-LABEL or I-LABEL"
                )
            if not row or row[0] == "-DOCSTART-":
                continue
            first = first or (number, len(row))
            # spaCy would cut all lines of a sentence to the shortest one.
            if len(row) != first[1]:
                raise ValueError(
                    f"line {first[0]} has {first[1]} columns, and line {number} has {len(row)}"
                )
        docs = DocBin(docs=conll_ner_to_docs(text, n_sents=1, no_print=True))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if not len(docs):
        raise ValueError(f"{path} has no sentence; it needs lines with a token, a tab and a tag")
    out.parent.mkdir(parents=True, exist_ok=True)
    docs.to_disk(out)
    return docs


def main() -> None:
    """Convert a file and print the number of sentences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.tsv")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    args = parser.parse_args()
    try:
        docs = convert(args.path, args.out)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(f"{args.out}: {len(docs)} sentences")


if __name__ == "__main__":
    main()

"""Convert IOB2 text to Docs for `spacy train`, one per sentence.

    python convert_ner.py IN.tsv OUT.spacy

A line is a token, a tab and a tag; an empty line ends a sentence. It does the same as
`spacy convert --converter ner --n-sents 1`, but it also accepts empty lines that contain a tab. The released WNUT17 has
such lines, and spaCy's command would join the sentences around them.
"""

import argparse
import re
from pathlib import Path

from spacy.tokens import DocBin
from spacy.training.converters import conll_ner_to_docs


def main() -> None:
    """Convert a file and print the number of sentences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.tsv")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    args = parser.parse_args()
    text = re.sub(r"^[^\S\n]+$", "", args.path.read_text("utf-8-sig"), flags=re.MULTILINE)
    # spaCy would cut all lines of a sentence to the shortest one.
    for number, line in enumerate(text.split("\n"), 1):
        if line and not re.fullmatch(r"\S+[\t ](.*[\t ])?(O|[BILU]-\S+|-DOCSTART-.*)", line):
            raise SystemExit(
                f"{args.path}:{number}: {line!r} is not a token, a tab and an IOB2 tag"
            )
    docs = DocBin(docs=conll_ner_to_docs(text, n_sents=1, no_print=True))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    docs.to_disk(args.out)
    print(f"{args.out}: {len(docs)} sentences")


if __name__ == "__main__":
    main()

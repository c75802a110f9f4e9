"""Convert sets of names in IOB2 text to one file of binary Docs, under one set of labels.

    python convert_names.py DATA/ner train corpus/names-train.spacy --sets wnut17,wikigold \
        --labels person=PER,location=LOC,corporation=ORG,group=ORG,creative-work=,product=

It reads DATA/ner/NAME-PART.tsv of each set: a token, a tab and a tag in each line, an empty line after each sentence.
A label that the map does not name stays as it is. A label that becomes nothing is left out.
"""

import argparse
import re
from pathlib import Path

from spacy.tokens import DocBin, Span
from spacy.training.converters import conll_ner_to_docs


def main() -> None:
    """Write the file and print the number of sentences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("part", choices=["train", "dev", "test"])
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument("--sets", required=True, help="names of the sets, separated by commas")
    parser.add_argument(
        "--labels", default="", help="OLD=NEW for each label to change, OLD= for one to leave out"
    )
    args = parser.parse_args()
    labels = dict(pair.split("=") for pair in args.labels.split(",") if pair)
    docs = DocBin()
    for name in args.sets.split(","):
        text = (args.folder / f"{name}-{args.part}.tsv").read_text("utf-8-sig")
        # The released WNUT17 has empty lines with a tab.
        text = re.sub(r"^[^\S\n]+$", "", text, flags=re.MULTILINE)
        for doc in conll_ner_to_docs(text, n_sents=1, no_print=True):
            # spaCy's converter sets the tag "-" on every token, and `spacy evaluate` would score it.
            for token in doc:
                token.tag = 0
            doc.ents = [
                Span(doc, span.start, span.end, labels.get(span.label_, span.label_))
                for span in doc.ents
                if labels.get(span.label_) != ""
            ]
            docs.add(doc)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    docs.to_disk(args.out)
    print(f"{args.out}: {len(docs)} sentences of {args.sets}")


if __name__ == "__main__":
    main()

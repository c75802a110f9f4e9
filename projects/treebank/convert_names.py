"""Convert sets of names in IOB2 text to one file of binary Docs, under one set of labels.

    python convert_names.py DATA/ner train corpus/names-train.spacy --sets wnut17,wikigold \
        --labels person=PER,location=LOC,corporation=ORG,group=ORG,creative-work=MISC,product=MISC

It reads DATA/ner/NAME-PART.tsv of each set: a token, a tab and a tag in each line, an empty line after each sentence.
A label that the map does not name stays as it is.
"""

import argparse
import re
from pathlib import Path

from spacy.tokens import DocBin, Span
from spacy.training.converters import conll_ner_to_docs

TAG = re.compile(r"O|[BILU]-\S+")


def convert(paths: list[Path], labels: dict[str, str]) -> tuple[DocBin, set[str]]:
    """Return the Docs of some files, one for each sentence, with their labels mapped, and the labels that no name has.

    The Docs have no part-of-speech tags, so `spacy evaluate` does not score tags with them.

    Raises:
        ValueError: a file is not UTF-8, has no sentence, or has a line that does not end with a tag or has
            another number of columns than the first.
    """
    docs, unused = DocBin(), set(labels)
    for path in paths:
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
            found = list(conll_ner_to_docs(text, n_sents=1, no_print=True))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        if not found:
            raise ValueError(
                f"{path} has no sentence; it needs lines with a token, a tab and a tag"
            )
        for doc in found:
            unused -= {span.label_ for span in doc.ents}
            # spaCy's converter sets the tag "-" on every token.
            for token in doc:
                token.tag = 0
            doc.ents = [
                Span(doc, span.start, span.end, labels.get(span.label_, span.label_))
                for span in doc.ents
            ]
            docs.add(doc)
    return docs, unused


def main() -> None:
    """Write the file and print the number of sentences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("part", choices=["train", "dev", "test"])
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument("--sets", required=True, help="names of the sets, separated by commas")
    parser.add_argument(
        "--labels", default="", help="OLD=NEW for each label to change, separated by commas"
    )
    args = parser.parse_args()
    paths = [args.folder / f"{name}-{args.part}.tsv" for name in args.sets.split(",")]
    try:
        pairs = [pair.partition("=") for pair in args.labels.split(",") if pair]
        if wrong := [old for old, _, new in pairs if not new]:
            raise ValueError(f"--labels: {wrong[0]!r} has no new label. Write {wrong[0]}=NEW")
        labels = {old: new for old, _, new in pairs}
        docs, unused = convert(paths, labels)
        # A small dev or test set can lack a label.
        if unused and args.part == "train":
            raise ValueError(f"No name has the label {', '.join(sorted(unused))}. Correct --labels")
        args.out.parent.mkdir(parents=True, exist_ok=True)
        docs.to_disk(args.out)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(f"{args.out}: {len(docs)} sentences of {args.sets}")


if __name__ == "__main__":
    main()

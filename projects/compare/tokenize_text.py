"""Tokenize raw text for floret. Each line of text becomes a line of tokens separated by spaces.

python tokenize_text.py "DATA/pretrain-en/train-*" OUT.txt --lang en
"""

import argparse
import glob
import os
from collections.abc import Iterator
from pathlib import Path

import spacy
from smart_open import open as open_text


def tokenized(pattern: str, lang: str) -> Iterator[str]:
    """Yield the tokenized lines of all files that match a pattern, sorted by name. Empty lines are skipped.

    Args:
        pattern: glob pattern of UTF-8 text files, which may be compressed (.gz, .xz or .zst).
        lang: language of the tokenizer.

    Raises:
        FileNotFoundError: no file matches the pattern.
    """
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise FileNotFoundError(f"No file matches {pattern}")
    nlp = spacy.blank(lang)
    for path in paths:
        with open_text(path, "rt", encoding="utf-8-sig") as lines:
            for line in filter(str.strip, lines):
                yield " ".join(token.text for token in nlp.make_doc(line) if not token.is_space)


def main() -> None:
    """Parse the arguments, write the file, and print the number of words."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern", metavar="RAW_TEXT", help="a file or a quoted glob pattern")
    parser.add_argument("out", type=Path, metavar="OUT.txt")
    parser.add_argument("--lang", default="en", help="language of the text")
    args = parser.parse_args()
    partial = args.out.with_suffix(".partial")
    words = 0
    with partial.open("w", encoding="utf8", newline="\n") as out:
        for line in tokenized(args.pattern, args.lang):
            words += line.count(" ") + 1
            out.write(line + "\n")
    os.replace(partial, args.out)
    print(f"{args.out}: {words:,} words")


if __name__ == "__main__":
    main()

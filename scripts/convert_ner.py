"""Convert IOB2 text to the binary Docs that `spacy train` reads.

    python scripts/convert_ner.py IN.tsv OUT.spacy

A line is a token, a tab and a tag: O, or B-TYPE and I-TYPE. An empty line ends a sentence.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin

TAG = re.compile(r"O|[BI]-\S+")


@dataclass
class Sentence:
    """A sentence: words and their IOB2 tags."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    repaired: int = 0
    """Number of I-TYPE tags that were replaced by B-TYPE."""


class Counts(NamedTuple):
    """Numbers of what a conversion wrote."""

    sentences: int
    docs: int
    entities: int
    repaired: int


def read_iob2(path: Path, *, repair: bool = False) -> Iterator[Sentence]:
    """Read the sentences of a file.

    Args:
        path: UTF-8 text.
        repair: an I-TYPE that continues no entity begins one instead of being an error. The released WNUT17 needs it.

    Raises:
        ValueError: a line is invalid, or there is no sentence; the message names file and line.
    """
    sentence = Sentence()
    empty = True
    with path.open(encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                word, tag = _columns(line.rstrip("\r\n"), f"{path}:{number}")
                if not _continues(tag, sentence.tags):
                    if not repair:
                        raise ValueError(
                            f"{path}:{number}: {tag} at {word!r} continues no {tag[2:]} (the tag before is "
                            f"{sentence.tags[-1] if sentence.tags else 'none, the sentence begins'}); "
                            f"write B-{tag[2:]}, or use --repair"
                        )
                    tag = f"B-{tag[2:]}"
                    sentence.repaired += 1
                sentence.words.append(word)
                sentence.tags.append(tag)
            elif sentence.words:
                yield sentence
                sentence, empty = Sentence(), False
    if sentence.words:
        yield sentence
    elif empty:
        raise ValueError(f"{path}: no sentence in it; expected lines of token, tab, tag")


def _columns(line: str, where: str) -> tuple[str, str]:
    columns = line.split("\t")
    if len(columns) != 2 or not columns[0].strip():
        raise ValueError(f"{where}: expected token, tab, tag; found {line!r}")
    word, tag = columns
    if not TAG.fullmatch(tag):
        raise ValueError(f"{where}: the tag {tag!r} of {word!r} is not O, B-TYPE or I-TYPE")
    return word, tag


def _continues(tag: str, before: list[str]) -> bool:
    """Return True if the tag may follow: only an I-TYPE needs a B-TYPE or I-TYPE of its type before it."""
    return not tag.startswith("I-") or (bool(before) and before[-1][1:] == tag[1:])


def make_docs(nlp: Language, sentences: list[Sentence], n_sents: int) -> Iterator[Doc]:
    """Create Docs of `n_sents` sentences each, with entities and sentence boundaries."""
    for start in range(0, len(sentences), n_sents):
        group = sentences[start : start + n_sents]
        yield Doc(
            nlp.vocab,
            words=[word for sentence in group for word in sentence.words],
            ents=[tag for sentence in group for tag in sentence.tags],
            sent_starts=[i == 0 for sentence in group for i in range(len(sentence.words))],
        )


def convert(
    path: Path, out: Path, *, lang: str = "en", n_sents: int = 1, repair: bool = False
) -> Counts:
    """Convert one file, and return counts of what was written."""
    if n_sents < 1:
        raise ValueError(f"--n-sents {n_sents}: a Doc contains at least one sentence")
    try:
        sentences = list(read_iob2(path, repair=repair))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error}); save it as UTF-8 first") from error
    docs = list(make_docs(spacy.blank(lang), sentences, n_sents))
    out.parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=docs).to_disk(out)
    return Counts(
        sentences=len(sentences),
        docs=len(docs),
        entities=sum(len(doc.ents) for doc in docs),
        repaired=sum(sentence.repaired for sentence in sentences),
    )


def main() -> None:
    """Convert a file and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.tsv")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument("--lang", default="en", help="language of the blank pipeline")
    parser.add_argument(
        # One by default: the sentence boundaries are then those of the labelled file.
        "--n-sents",
        type=int,
        default=1,
        help="sentences per Doc",
    )
    parser.add_argument(
        "--repair", action="store_true", help="let an I-TYPE that continues no entity begin one"
    )
    args = parser.parse_args()
    try:
        counts = convert(
            args.path, args.out, lang=args.lang, n_sents=args.n_sents, repair=args.repair
        )
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    repaired = f", {counts.repaired} tags repaired" if counts.repaired else ""
    print(
        f"{args.out}: {counts.sentences} sentences in {counts.docs} Docs, "
        f"{counts.entities} entities{repaired}"
    )


if __name__ == "__main__":
    main()

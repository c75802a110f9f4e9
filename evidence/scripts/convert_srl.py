"""Turn predicates and their arguments in JSONL into the binary Docs that the srl configs read.

    python scripts/convert_srl.py IN.jsonl OUT.spacy

A line is a sentence:
{"tokens": [...], "predicates": [{"index": 3, "frame": "come.03", "args": [[0, 3, "ARG2"], ...]}, ...]}
where an argument is [start, end, label], end exclusive. Other keys are left out, and so are sentences without
predicates.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_elmo.text.documents import json_lines

# A script sees its own folder only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tasks.srl_annotation import Argument, set_arguments, set_predicates  # noqa: E402


class Proposition(NamedTuple):
    """A predicate and its arguments."""

    index: int
    frame: str
    arguments: list[Argument]


class Sentence(NamedTuple):
    """Words and what is said of them."""

    words: list[str]
    propositions: list[Proposition]


class Counts(NamedTuple):
    """What a conversion wrote, and how many sentences it left out."""

    docs: int
    predicates: int
    arguments: int
    without: int


def read_jsonl(path: Path) -> list[Sentence]:
    """The sentences of a file. Empty lines are passed over.

    Raises:
        ValueError: a line that cannot be right, or no sentence at all; it names file and line.
    """
    found = list(json_lines(path, _parsed, "strict"))
    if not found:
        raise ValueError(
            f'{path}: no sentence in it; expected lines of {{"tokens": ..., "predicates": ...}}'
        )
    return found


def _parsed(record: Any) -> Sentence:
    try:
        words = record["tokens"]
        found = [
            Proposition(each["index"], each["frame"], [Argument(*place) for place in each["args"]])
            for each in record["predicates"]
        ]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f'expected {{"tokens": [...], "predicates": [{{"index": ..., "frame": ..., '
            f'"args": [[start, end, label], ...]}}]}} ({type(error).__name__}: {error})'
        ) from error
    for proposition in found:
        _check(proposition, words)
    return Sentence(words, found)


def _check(proposition: Proposition, words: list[str]) -> None:
    index, frame, arguments = proposition
    if index not in range(len(words)):
        raise ValueError(f"{frame!r} is at token {index} of {len(words)}")
    taken: set[int] = set()
    for start, end, label in arguments:
        places = set(range(start, end))
        if not places or not places <= set(range(len(words))):
            raise ValueError(f"{label} of {frame!r} is [{start}, {end}) of {len(words)} tokens")
        if places & taken:
            raise ValueError(
                f"{label} of {frame!r} at [{start}, {end}) overlaps another argument of it; "
                "a token has one role for each predicate"
            )
        taken |= places


def make_doc(vocab: Vocab, sentence: Sentence) -> Doc:
    """The Doc of a sentence."""
    # No spaces: spaCy's readers then take the tokens as they are, which is what the annotation counts.
    doc = Doc(vocab, words=sentence.words)
    set_predicates(doc, {each.index: each.frame for each in sentence.propositions})
    set_arguments(doc, {each.index: each.arguments for each in sentence.propositions})
    return doc


def convert(path: Path, out: Path, *, lang: str = "en") -> Counts:
    """Convert one file and say what was written."""
    sentences = read_jsonl(path)
    spoken = [sentence for sentence in sentences if sentence.propositions]
    vocab = spacy.blank(lang).vocab
    out.parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=[make_doc(vocab, sentence) for sentence in spoken]).to_disk(out)
    propositions: list[Any] = [each for sentence in spoken for each in sentence.propositions]
    return Counts(
        docs=len(spoken),
        predicates=len(propositions),
        arguments=sum(len(each.arguments) for each in propositions),
        without=len(sentences) - len(spoken),
    )


def main() -> None:
    """Parse, convert, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.jsonl")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument("--lang", default="en", help="language of the blank pipeline")
    args = parser.parse_args()
    try:
        counts = convert(args.path, args.out, lang=args.lang)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(
        f"{args.out}: {counts.docs} Docs, {counts.predicates} predicates, {counts.arguments} arguments; "
        f"{counts.without} sentences without a predicate left out"
    )


if __name__ == "__main__":
    main()

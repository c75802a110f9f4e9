"""Convert predicates and their arguments in JSONL to Docs for the srl configs.

    python -m tasks.srl.convert IN.jsonl OUT.spacy

A line is a sentence:
{"tokens": [...], "predicates": [{"index": 3, "frame": "come.03", "args": [[0, 3, "ARG2"], ...]}, ...]}
An argument is [start, end, label], where `end` is exclusive. Other keys are ignored, and sentences without predicates
are left out.
"""

from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..conversion import arguments, read_records, run, write_docs
from .annotation import Argument, set_arguments, set_predicates


class Proposition(NamedTuple):
    """A predicate and its arguments."""

    index: int
    frame: str
    arguments: list[Argument]


class Sentence(NamedTuple):
    """The words of a sentence and its propositions."""

    words: list[str]
    propositions: list[Proposition]


class Counts(NamedTuple):
    """Numbers of Docs, predicates and arguments that were written, and of sentences that were left out."""

    docs: int
    predicates: int
    arguments: int
    without: int


def _parsed(record: Any) -> Sentence:
    try:
        words = record["tokens"]
        found = [
            Proposition(each["index"], each["frame"], [Argument(*entry) for entry in each["args"]])
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
        raise ValueError(f"{frame!r} is at token {index}, but the sentence has {len(words)} tokens")
    taken: set[int] = set()
    for start, end, label in arguments:
        tokens = set(range(start, end))
        if not tokens or not tokens <= set(range(len(words))):
            raise ValueError(
                f"{label} of {frame!r} is [{start}, {end}), but the sentence has {len(words)} tokens"
            )
        if tokens & taken:
            raise ValueError(
                f"{label} of {frame!r} at [{start}, {end}) overlaps another argument of {frame!r}; "
                "a token may have only one role for each predicate"
            )
        taken |= tokens


def make_doc(vocab: Vocab, sentence: Sentence) -> Doc:
    """Return the Doc of a sentence."""
    # Without spaces, spaCy's readers keep these tokens, to which the annotation refers.
    doc = Doc(vocab, words=sentence.words)
    set_predicates(doc, {each.index: each.frame for each in sentence.propositions})
    set_arguments(doc, {each.index: each.arguments for each in sentence.propositions})
    return doc


def convert(path: Path, out: Path, *, lang: str = "en") -> Counts:
    """Convert one file and return the counts."""
    sentences = read_records(path, _parsed, "sentence", '{"tokens": ..., "predicates": ...}')
    annotated = [sentence for sentence in sentences if sentence.propositions]
    vocab = spacy.blank(lang).vocab
    write_docs([make_doc(vocab, sentence) for sentence in annotated], out)
    propositions: list[Any] = [each for sentence in annotated for each in sentence.propositions]
    return Counts(
        docs=len(annotated),
        predicates=len(propositions),
        arguments=sum(len(each.arguments) for each in propositions),
        without=len(sentences) - len(annotated),
    )


if __name__ == "__main__":
    run(
        convert,
        arguments(__doc__),
        "{out}: {docs} Docs, {predicates} predicates, {arguments} arguments; {without} sentences without a predicate "
        "left out",
    )

"""Training text in other letter case and with wrapped lines, for pipelines that read headlines, chats and e-mail."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from spacy.attrs import DEP, ENT_ID, ENT_IOB, ENT_KB_ID, ENT_TYPE, HEAD, SENT_START
from spacy.language import Language
from spacy.symbols import dep
from spacy.tokens import Doc, Span
from spacy.training import Example

from .conventions import annotate_spaces

Augmenter = Callable[[Language, Example], Iterator[Example]]
Case = Callable[[str], str]

_STRUCTURE = [ENT_IOB, ENT_TYPE, ENT_KB_ID, ENT_ID, HEAD, DEP, SENT_START]
_HEAD = _STRUCTURE.index(HEAD)
# No entity; depends on the token before; begins no sentence.
_LINE_BREAK = np.array([2, 0, 0, 0, -1, dep, -1])
_INSIDE = 1  # of ENT_IOB


def case_and_lines_v1(
    lower: float, upper: float, title: float, lines: float, width: int = 12
) -> Augmenter:
    """Return an augmenter that changes the letter case and the lines of training texts, anew for each example in each
    epoch (docs/train.md#letter-case-and-line-breaks).

    A lemma with a capital letter changes its case with its word. A line break gets the annotation that spaCy gives to
    whitespace. All other annotation stays, and what is missing stays missing.

    Args:
        lower: probability that the text becomes lower case.
        upper: probability that it becomes upper case.
        title: probability that the first letter of each word becomes a capital letter.
        lines: probability that the text gets a line break after every `width` words or so.
        width: words in a line, give or take half of them.

    Raises:
        ValueError: the probabilities of the cases add up to more than 1.
    """
    total = lower + upper + title
    if total > 1:
        raise ValueError(f"lower + upper + title = {total}: at most 1 is possible")
    cases: dict[Case, float] = {str.lower: lower, str.upper: upper, _capitalize: title}
    cases[str] = 1 - total
    return partial(_augment, cases=cases, lines=lines, width=width)


def _capitalize(word: str) -> str:
    # Unlike `str.capitalize`, it leaves "NASA" and "McDonald" as they are.
    return word[:1].upper() + word[1:]


def _augment(
    nlp: Language, example: Example, *, cases: dict[Case, float], lines: float, width: int
) -> Iterator[Example]:
    (case,) = random.choices(list(cases), list(cases.values()))
    breaks = set()
    if random.random() < lines:
        position = random.randint(1, width)
        while position < len(example.reference):
            breaks.add(position)
            position += random.randint(width // 2, width + width // 2)
    if breaks or case is not str:
        reference = _changed(example.reference, case, breaks)
        if reference.has_unknown_spaces:
            predicted = Doc(
                nlp.vocab, [t.text for t in reference], [bool(t.whitespace_) for t in reference]
            )
        else:
            predicted = nlp.make_doc(reference.text)
        example = Example(predicted, reference)
    yield example


def _changed(gold: Doc, case: Case, breaks: set[int]) -> Doc:
    """Return a Doc with its words in another case, and line breaks before the tokens with the numbers `breaks`.

    Unlike spaCy's augmenters, it copies the annotation by tokens: the offsets of characters change, for example where
    "ß" becomes "SS", and the dictionary of an `Example` does not say which annotation is missing.
    """
    # A line break begins as a copy of the next token, so that it is inside the same entity.
    old = [gold[number] for number in sorted([*range(len(gold)), *breaks])]
    new = {token.i: place for place, token in enumerate(old)}
    words = [
        # "n't" in "Don't" is not the start of a word, so `_capitalize` must not see its first letter as one.
        case("x" + token.text)[1:]
        if token.i and not token.nbor(-1).whitespace_
        else case(token.text)
        for token in old
    ]
    spaces = [bool(token.whitespace_) for token in old]
    attributes = [*_STRUCTURE, "TAG", "POS", "MORPH", "LEMMA"]
    values: Any = gold.to_array(attributes)[[token.i for token in old]].astype("int64")
    values[:, _HEAD] = [new[token.head.i] - place for place, token in enumerate(old)]
    line_break = _LINE_BREAK * [gold.has_annotation(name) for name in _STRUCTURE]
    added = [new[number] - 1 for number in breaks]
    for place in added:
        words[place], spaces[place] = "\n", False
        first = _HEAD if values[place, 0] == _INSIDE else 0
        values[place, first : len(_STRUCTURE)] = line_break[first:]
    doc = Doc(gold.vocab, words, spaces).from_array(attributes, values.astype("uint64"))
    doc.has_unknown_spaces = gold.has_unknown_spaces
    annotate_spaces(doc, [doc[place] for place in added])
    for token in doc:
        if token.lemma_ != token.lemma_.lower():
            token.lemma_ = case(token.lemma_)
    doc.cats = dict(gold.cats)
    for name, group in gold.spans.items():
        doc.spans[name] = [
            Span(doc, new[s.start], new[s.end - 1] + 1, s.label, kb_id=s.kb_id, span_id=s.id)
            for s in group
        ]
    return doc

"""Training text in other letter case and with wrapped lines, for pipelines that read headlines, chats and e-mail."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from spacy.language import Language
from spacy.symbols import dep
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from .conventions import annotate_spaces

Augmenter = Callable[[Language, Example], Iterator[Example]]
Case = Callable[[str], str]

_ENTITY = ("ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID")
_ATTRIBUTES = (*_ENTITY, "SENT_START", "TAG", "POS", "MORPH", "LEMMA")
_BEGIN, _OUTSIDE = 3, 2  # values of ENT_IOB


def case_and_lines_v1(
    lower: float, upper: float, title: float, lines: float, width: int = 12
) -> Augmenter:
    """Return an augmenter for `@augmenters = "spacy-elmo.case_and_lines.v1"` in a config. It draws anew for each
    example in each epoch.

    A lemma with a capital letter changes its case with its word. A line break gets the annotation that spaCy gives to
    whitespace. All other annotation stays as it is; what is missing stays missing.

    Args:
        lower: probability that the text becomes lower case.
        upper: probability that it becomes upper case.
        title: probability that the first letter of each word becomes a capital letter.
        lines: probability that the text gets a line break after every `width` words or so.
        width: words in a line, give or take half of them.

    Raises:
        ValueError: the probabilities of the cases add up to more than 1.
    """
    if lower + upper + title > 1:
        raise ValueError(f"lower + upper + title = {lower + upper + title}: at most 1 is possible")
    cases: dict[Case, float] = {str.lower: lower, str.upper: upper, _capitalize: title}
    return partial(_augment, cases=cases, lines=lines, width=width)


def _capitalize(word: str) -> str:
    # Unlike `str.capitalize`, it leaves "NASA" and "McDonald" as they are.
    return word[:1].upper() + word[1:]


def _augment(
    nlp: Language,
    example: Example,
    *,
    cases: dict[Case, float],
    lines: float,
    width: int,
) -> Iterator[Example]:
    drawn = random.random()
    change: Case | None = None
    for case, probability in cases.items():
        drawn -= probability
        if drawn < 0:
            change = case
            break
    breaks = set()
    if random.random() < lines:
        position = random.randint(1, width)
        while position < len(example.reference):
            breaks.add(position)
            position += random.randint(width // 2, width + width // 2)
    if change or breaks:
        reference = _changed(example.reference, change or str, breaks)
        example = Example(nlp.make_doc(reference.text), reference)
    yield example


def _changed(gold: Doc, case: Case, breaks: set[int]) -> Doc:
    """Return a Doc with its words in another case, and line breaks before the tokens with the numbers `breaks`.

    Unlike spaCy's augmenters, it copies the annotation by tokens. Offsets of characters change, for example where "ß"
    becomes "SS", and the dictionary of an `Example` does not say which annotation is missing.
    """
    words: list[str] = []
    spaces: list[bool] = []
    old: list[int] = []  # number of each token in `gold`; a line break has that of the next token
    for token in gold:
        if token.i in breaks:
            words.append("\n")
            spaces.append(False)
            old.append(token.i)
        # "n't" in "Don't" is not the start of a word, so `_capitalize` must not see its first letter as one.
        is_start = token.i == 0 or token.nbor(-1).whitespace_
        words.append(case(token.text) if is_start else case("x" + token.text)[1:])
        spaces.append(bool(token.whitespace_))
        old.append(token.i)
    new = {number: place for place, number in enumerate(old)}
    added = [new[number] - 1 for number in breaks]
    doc = Doc(gold.vocab, words, spaces)
    values = gold.to_array(_ATTRIBUTES)[old]
    for place in added:
        if values[place, 0] == _BEGIN:
            values[place, : len(_ENTITY)] = _OUTSIDE, 0, 0, 0
    doc.from_array(_ATTRIBUTES, values)
    annotate_spaces(doc, [doc[place] for place in added])
    for place in added if gold.has_annotation("SENT_START") else ():
        doc[place].is_sent_start = False
    # After the borders of sentences, because a tree sets them.
    heads = np.array([new[gold[number].head.i] - place for place, number in enumerate(old)])
    labels = gold.to_array("DEP")[old]
    if gold.has_annotation("DEP"):
        heads[added], labels[added] = -1, dep
    doc.from_array(["HEAD", "DEP"], np.stack([heads.astype("uint64"), labels], axis=1))
    for token in doc:
        if token.lemma_ != token.lemma_.lower():
            token.lemma_ = case(token.lemma_)
    doc.cats = dict(gold.cats)
    for name, group in gold.spans.items():
        spans = [
            Span(doc, new[s.start], new[s.end - 1] + 1, s.label, kb_id=s.kb_id, span_id=s.id)
            for s in group
        ]
        doc.spans[name] = SpanGroup(doc, name=group.name, attrs=group.attrs, spans=spans)
    return doc

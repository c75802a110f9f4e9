"""Noun chunks of trees in Universal Dependencies (UD), for `doc.noun_chunks`."""

from __future__ import annotations

from collections.abc import Iterator

from spacy.errors import Errors
from spacy.symbols import NOUN, NUM, PRON, PROPN, PUNCT, SPACE
from spacy.tokens import Doc, Span, Token

_BULLETS = {"-", "*", "•", "–"}
_NOMINAL = {NOUN, PROPN, PRON}
# Relations of words that belong to the chunk of their head, before and after the head, without their subtypes or with
# them. "poss", "predet" and "prt" are names of ClearNLP, which the component `spacy_conventions` can write.
_BEFORE = {
    "amod", "compound", "det", "fixed", "flat", "goeswith", "nmod:desc", "nmod:poss", "nmod:unmarked", "nummod",
    "poss", "predet", "prt",
}  # fmt: skip
_AFTER = {"compound", "fixed", "flat", "goeswith", "prt"}
# "Chapter 5", "September 11"
_NUMBER_AFTER = {"nummod", "nmod:unmarked"}
# Adjectives and determiners also follow the noun in languages that inflect them: Latin "populus Romanus".
_INFLECTED_AFTER = {"amod", "det", "nmod:poss", "nummod", "poss", "predet"}
_NO_PHRASE = {
    "advmod", "case", "cc", "expl:impers", "expl:pass", "expl:pv", "fixed", "goeswith", "mark", "punct", "reparandum",
}  # fmt: skip
_NEVER_FIRST = {"case", "cc", "mark", "punct"}


def noun_chunks(doclike: Doc | Span) -> Iterator[tuple[int, int, int]]:
    """Yield the base noun phrases of a parsed Doc or Span.

    A chunk is a noun, proper noun or pronoun with the words that describe it: determiners, adjectives, numbers, the
    other parts of a name, a possessor. Coordinated nouns and the phrases and clauses that follow it are not part of it.

    Yields:
        Index of the first token, index after the last token, and the hash of the label "NP".

    Raises:
        ValueError: the Doc is not parsed.
    """
    doc = doclike.doc
    if not doc.has_annotation("DEP"):
        raise ValueError(Errors.E029)
    label = doc.vocab.strings.add("NP")
    chunks: list[tuple[int, int]] = []
    for token in doclike:
        # Existential "there" (EX) refers to nothing.
        if token.pos not in _NOMINAL or token.tag_ == "EX" or _is_part(token):
            continue
        start, end = _extent(token)
        # "U.S." is inside "a U.S. - based company".
        while chunks and chunks[-1][0] >= start:
            chunks.pop()
        if not chunks or chunks[-1][1] <= start:
            chunks.append((start, end))
    yield from ((start, end, label) for start, end in chunks)


def _is_part(token: Token) -> bool:
    """Return True if a word is part of the chunk of its head, or no phrase."""
    return token.dep_ in _NO_PHRASE or (token.head.pos in _NOMINAL and _describes(token))


def _describes(token: Token) -> bool:
    relations = {token.dep_, token.dep_.partition(":")[0]}
    if token.i < token.head.i:
        return not relations.isdisjoint(_BEFORE)
    if not relations.isdisjoint(_AFTER):
        return True
    if token.pos == NUM and not relations.isdisjoint(_NUMBER_AFTER):
        return all(between.is_space for between in token.doc[token.head.i + 1 : token.i])
    # A participle with words of its own is a clause.
    return (
        token.lang_ != "en"
        and all(right.is_space for right in token.rights)
        and not relations.isdisjoint(_INFLECTED_AFTER)
    )


def _extent(head: Token) -> tuple[int, int]:
    """Return the index of the first token of a chunk, and the index after the last one.

    Words that are not part of the chunk end it, also between its words: Latin "pluribus potest rationibus".
    Punctuation and spaces between its words are part of it.
    """
    doc = head.doc
    described = (token for child in head.children if _describes(child) for token in child.subtree)
    inside = {token.i for token in described if not token.is_space}
    first = last = head.i
    for index in range(head.i - 1, -1, -1):
        if index in inside:
            first = index
        elif not _is_bridged(doc, index):
            break
    for index in range(head.i + 1, len(doc)):
        if index in inside:
            last = index
        elif not _is_bridged(doc, index):
            break
    # A wrong tree can put the preposition of the chunk into a name: "to AQ Kahn".
    while doc[first].dep_ in _NEVER_FIRST and first < head.i:
        first += 1
    return first, last + 1


def _is_bridged(doc: Doc, index: int) -> bool:
    """Return True if a chunk can go on after this token, which is not a part of its phrase: punctuation, or whitespace
    that does not end the cell of a table or stand before a bullet."""
    if doc[index].pos != SPACE:
        return doc[index].pos == PUNCT
    return "\t" not in doc[index].text and doc[index + 1 : index + 2].text not in _BULLETS

"""Noun chunks of trees in Universal Dependencies (UD), for `doc.noun_chunks`."""

from __future__ import annotations

from collections.abc import Iterator

from spacy.errors import Errors
from spacy.symbols import NOUN, NUM, PRON, PROPN, PUNCT
from spacy.tokens import Doc, Span, Token

_NOMINAL = {NOUN, PROPN, PRON}
# Relations of words that belong to the chunk of their head, before and after the head, without their subtypes or with
# them. "poss" and "predet" are names of ClearNLP, which the component `spacy_conventions` can write.
_BEFORE = {
    "amod", "compound", "det", "fixed", "flat", "goeswith", "nmod:desc", "nmod:poss", "nmod:unmarked", "nummod",
    "poss", "predet",
}  # fmt: skip
_AFTER = {"compound", "fixed", "flat", "goeswith"}
# "Chapter 5", "September 11"
_NUMBER_AFTER = {"nummod", "nmod:unmarked"}
# Adjectives and determiners also follow the noun in languages that inflect them: Latin "populus Romanus".
_INFLECTED_AFTER = {"amod", "det", "nmod:poss", "nummod"}
_NO_PHRASE = {"advmod", "case", "cc", "fixed", "goeswith", "mark", "reparandum"}
_NEVER_FIRST = {"case", "cc", "mark", "punct"}


def noun_chunks(doclike: Doc | Span) -> Iterator[tuple[int, int, int]]:
    """Yield the base noun phrases of a parsed Doc or Span.

    A chunk is a noun, proper noun or pronoun with the words that describe it: determiners, adjectives, numbers, the
    other parts of a name, a possessor. Coordinated nouns, prepositional phrases and clauses are not part of it.

    Yields:
        Index of the first token, index after the last token, and the hash of the label "NP".

    Raises:
        ValueError: the Doc is not parsed.
    """
    doc = doclike.doc
    if not doc.has_annotation("DEP"):
        raise ValueError(Errors.E029)
    label = doc.vocab.strings.add("NP")
    end = 0
    for token in doclike:
        # Existential "there" (EX) refers to nothing.
        if token.pos not in _NOMINAL or token.tag_ == "EX" or _is_part(token):
            continue
        start, stop = _first(token), _last(token) + 1
        if start >= end:
            end = stop
            yield start, stop, label


def _is_part(token: Token) -> bool:
    """Return True if a word, or the coordination that it belongs to, is part of the chunk of its head, or no phrase."""
    while token.dep_ == "conj" and token.head is not token:
        token = token.head
    return token.dep_ in _NO_PHRASE or (token.head.pos in _NOMINAL and _describes(token))


def _describes(token: Token) -> bool:
    relations = {token.dep_, token.dep_.partition(":")[0]}
    if token.i < token.head.i:
        return not relations.isdisjoint(_BEFORE)
    if not relations.isdisjoint(_AFTER):
        return True
    if token.pos == NUM and not relations.isdisjoint(_NUMBER_AFTER):
        return token.i == token.head.i + 1
    # A participle with words of its own is a clause.
    return token.lang_ != "en" and not token.n_rights and not relations.isdisjoint(_INFLECTED_AFTER)


def _first(head: Token) -> int:
    """Return the index of the first token of a chunk. Words that do not describe the head end the chunk."""
    first = head.i
    for child in reversed(list(head.lefts)):
        if _describes(child):
            first = child.left_edge.i
        elif child.pos != PUNCT:
            break
    # A wrong tree can put the preposition of the chunk into a name: "to AQ Kahn".
    while head.doc[first].dep_ in _NEVER_FIRST and first < head.i:
        first += 1
    return first


def _last(head: Token) -> int:
    """Return the index of the last token of a chunk."""
    last = head.i
    for child in head.rights:
        if _describes(child):
            last = child.right_edge.i
        elif child.pos != PUNCT:
            break
    return last

"""Docs as a biLM reads them: distinct words, and for each span the rows of its words."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Doc, Span

from ...text.sentences import SPACE, word_kinds
from .distinct_words import distinct_words
from .spans import SpanGetter


@dataclass
class Sequences:
    """The spans of some Docs, whitespace tokens left out."""

    words: list[str]
    """K distinct words."""
    lengths: np.ndarray
    """(S,) words of each span, at least 1."""
    rows: np.ndarray
    """(N,) row of `words` for every word, span after span."""
    places: np.ndarray
    """(N,) where each of these words stands in the Docs laid end to end. Overlapping spans name a place twice."""
    tokens: int
    """T, the tokens of the Docs, whitespace included."""

    @classmethod
    def of(cls, docs: Sequence[Doc], get_spans: SpanGetter) -> Sequences:
        """Lay out Docs.

        Raises:
            ValueError: see `spans_of`.
        """
        words, rows = distinct_words(docs)
        starts, ends = _borders(docs, get_spans)
        owner, places = _ranges(starts, ends)
        read = (word_kinds(words) & SPACE == 0)[rows[places]]
        lengths = np.bincount(owner[read], minlength=len(starts))
        return cls(words, lengths[lengths > 0], rows[places[read]], places[read], len(rows))

    @functools.cached_property
    def counts(self) -> np.ndarray:
        """(N,) how many times the place of each word is named."""
        return np.bincount(self.places, minlength=self.tokens)[self.places]

    @functools.cached_property
    def overlap(self) -> bool:
        """Whether several spans hold the same word."""
        return bool((self.counts > 1).any())

    def batches(self, max_tokens: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Cut into batches of at most `max_tokens` words, a longer span alone; longest spans first, so that
        the sequences of a batch are of near-equal length.

        Yields:
            lengths (s,) of the spans of a batch, and (n,) which of the N words they are.
        """
        ends = np.cumsum(self.lengths)
        order = np.argsort(-self.lengths, kind="stable")
        for group in _cut(order, self.lengths, max_tokens):
            _, places = _ranges(ends[group] - self.lengths[group], ends[group])
            yield self.lengths[group], places


def spans_of(docs: Sequence[Doc], get_spans: SpanGetter) -> list[Iterable[Span]]:
    """What a getter, which may be a user's, says of Docs.

    Raises:
        ValueError: it does not answer with as many lists of spans as there are Docs.
    """
    spans = list(get_spans(list(docs)))
    if len(spans) != len(docs):
        raise ValueError(
            f"get_spans gave spans for {len(spans)} of {len(docs)} Docs; it must give one list per Doc"
        )
    return spans


def _borders(docs: Sequence[Doc], get_spans: SpanGetter) -> tuple[np.ndarray, np.ndarray]:
    offset, borders = 0, []
    for doc, own in zip(docs, spans_of(docs, get_spans), strict=True):
        borders += [(offset + span.start, offset + span.end) for span in own]
        offset += len(doc)
    both = np.array(borders, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _ranges(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All numbers of all ranges, one after the other, and which range each is of."""
    sizes = ends - starts
    owner = np.repeat(np.arange(len(sizes)), sizes)
    shift = starts - (np.cumsum(sizes) - sizes)
    return owner, np.arange(len(owner)) + shift[owner]


def _cut(order: np.ndarray, lengths: np.ndarray, most: int) -> Iterator[np.ndarray]:
    start = total = 0
    for stop, length in enumerate(lengths[order].tolist()):
        if total and total + length > most:
            yield order[start:stop]
            start, total = stop, 0
        total += length
    if total:
        yield order[start:]

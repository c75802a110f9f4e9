"""Docs in the form that a biLM takes: distinct words, and for each span the rows of its words."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Doc, Span

from ...text.sentences import SPACE, word_kinds
from ..options import SpanGetter
from .distinct_words import distinct_words
from .spans import rule_spans


@dataclass
class Sequences:
    """The spans of some Docs, without whitespace tokens."""

    words: list[str]
    """K distinct words."""
    lengths: np.ndarray
    """(S,) number of words of each span, at least 1."""
    rows: np.ndarray
    """(N,) row in `words` of every word, span after span."""
    places: np.ndarray
    """(N,) index of each of these words in the concatenated tokens of the Docs. Overlapping spans repeat an index."""
    n_tokens: int
    """T, the number of tokens of the Docs, whitespace included."""

    @classmethod
    def of(cls, docs: Sequence[Doc], get_spans: SpanGetter | None) -> Sequences:
        """Cut Docs into the spans of a getter (see `spans_of`).

        Raises:
            ValueError: see `spans_of`.
        """
        words, rows = distinct_words(docs)
        starts, ends = _borders(docs, get_spans)
        spans, places = _ranges(starts, ends)
        is_word = (word_kinds(words) & SPACE == 0)[rows[places]]
        lengths = np.bincount(spans[is_word], minlength=len(starts))
        return cls(words, lengths[lengths > 0], rows[places[is_word]], places[is_word], len(rows))

    @functools.cached_property
    def counts(self) -> np.ndarray:
        """(N,) how often the index of each word occurs in `places`."""
        return np.bincount(self.places, minlength=self.n_tokens)[self.places]

    @functools.cached_property
    def overlap(self) -> bool:
        """True if several spans contain the same word."""
        return bool((self.counts > 1).any())

    def batches(self, max_tokens: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of at most `max_tokens` words, or of one longer span. The longest spans come first, so that the
        sequences of a batch have nearly equal lengths.

        Yields:
            (s,) lengths of the spans of a batch, and (n,) indices of their words among the N words.
        """
        ends = np.cumsum(self.lengths)
        order = np.argsort(-self.lengths, kind="stable")
        for group in _cut(order, self.lengths, max_tokens):
            _, places = _ranges(ends[group] - self.lengths[group], ends[group])
            yield self.lengths[group], places


def spans_of(docs: Sequence[Doc], get_spans: SpanGetter | None) -> list[Iterable[Span]]:
    """Return the spans of each Doc by a getter, which may be a user's; None: by `rule_spans`.

    Raises:
        ValueError: the getter does not return one list of spans per Doc.
    """
    spans = list((get_spans or rule_spans)(list(docs)))
    if len(spans) != len(docs):
        raise ValueError(
            f"get_spans gave spans for {len(spans)} of {len(docs)} Docs; it must give one list per Doc"
        )
    return spans


def _borders(docs: Sequence[Doc], get_spans: SpanGetter | None) -> tuple[np.ndarray, np.ndarray]:
    offset, pairs = 0, []
    for doc, spans in zip(docs, spans_of(docs, get_spans), strict=True):
        pairs += [(offset + span.start, offset + span.end) for span in spans]
        offset += len(doc)
    borders = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return borders[:, 0], borders[:, 1]


def _ranges(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each number of the concatenated ranges the index of its range, and the number."""
    sizes = ends - starts
    ranges = np.repeat(np.arange(len(sizes)), sizes)
    shift = starts - (np.cumsum(sizes) - sizes)
    return ranges, np.arange(len(ranges)) + shift[ranges]


def _cut(order: np.ndarray, lengths: np.ndarray, max_tokens: int) -> Iterator[np.ndarray]:
    start = total = 0
    for stop, length in enumerate(lengths[order].tolist()):
        if total and total + length > max_tokens:
            yield order[start:stop]
            start, total = stop, 0
        total += length
    if total:
        yield order[start:]

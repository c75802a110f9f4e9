"""Span getters for the option `get_spans`, and the words of the spans as input for a biLM, which processes each
span of a Doc as a separate sequence."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc, Span

from ...text.sentences import SPACE, starts_of_kinds, word_kinds
from ..factory_options import SpanGetter


def rule_spans(docs: Sequence[Doc], *, wrapped: bool = False) -> list[list[Span]]:
    """Split each Doc into sentences with the rule in `text/sentences.py`, which uses no annotation. This is
    the default span getter."""
    types, type_of_token = distinct_words(docs)
    lengths = [len(doc) for doc in docs]
    all_starts = starts_of_kinds(word_kinds(types)[type_of_token], lengths, wrapped=wrapped)
    spans = []
    for doc, is_start in zip(docs, np.split(all_starts, np.cumsum(lengths)[:-1]), strict=False):
        bounds = itertools.pairwise([*np.flatnonzero(is_start).tolist(), len(doc)])
        spans.append([doc[start:end] for start, end in bounds])
    return spans


def wrapped_spans(docs: Sequence[Doc]) -> list[list[Span]]:
    """Split each Doc like `rule_spans`, but a single newline is only a space."""
    return rule_spans(docs, wrapped=True)


def sentence_spans(docs: Sequence[Doc]) -> list[list[Span]]:
    """Return the sentences of each Doc (`doc.sents`), which another component must have set."""
    return [list(doc.sents) for doc in docs]


def whole_docs(docs: Sequence[Doc]) -> list[list[Span]]:
    """Return each Doc as one span."""
    return [[doc[:]] for doc in docs]


def window_spans(docs: Sequence[Doc], *, size: int, stride: int) -> list[list[Span]]:
    """Split each Doc into windows of `size` tokens that start every `stride` tokens. The last window ends at
    the end of the Doc, and can be shorter."""
    return [
        [doc[start : start + size] for start in range(0, max(len(doc) - size + stride, 1), stride)]
        for doc in docs
    ]


def sents_v1() -> SpanGetter:
    """Return the span getter that takes the sentences of `doc.sents`. The component that sets them must run before
    `elmo`; for training, list it in `annotating_components`."""
    return sentence_spans


def doc_v1() -> SpanGetter:
    """Return the span getter that takes a whole Doc as one sequence."""
    return whole_docs


def windows_v1(size: int, stride: int) -> SpanGetter:
    """Return a span getter that splits a Doc into windows. A token in several windows gets the mean of its vectors.

    Args:
        size: tokens per window.
        stride: tokens from the start of one window to the start of the next, at most `size`.
    """
    if not 1 <= stride <= size:
        raise ValueError(
            f"Impossible windows of size = {size} with stride = {stride}: stride must be at least 1 and at most size,"
            " so that each token is in a window"
        )
    # Not a nested function, because it could not be pickled.
    return functools.partial(window_spans, size=size, stride=stride)


def wrapped_v1() -> SpanGetter:
    """Return the default span getter for text whose lines are wrapped at a width: a line break ends a sentence only
    beside another line break (docs/faq.md#how-does-the-bilm-split-a-doc-into-sentences)."""
    return wrapped_spans


def spans_of(docs: Sequence[Doc], get_spans: SpanGetter | None) -> list[list[Span]]:
    """Return the spans of each Doc by a span getter; None: `rule_spans`."""
    try:
        spans = [list(own) for own in (get_spans or rule_spans)(list(docs))]
    except ValueError as error:
        if "E030" not in str(error):
            raise
        raise ValueError(
            "get_spans needs sentences, but a Doc has none. The component that sets them must come before elmo. In"
            " training, it must also set them on the training Docs: add its name to [training.annotating_components]"
        ) from error
    if len(spans) != len(docs):
        raise ValueError(
            f"get_spans returned spans for {len(spans)} of {len(docs)} Docs; it must return one list per Doc"
        )
    for doc, own in zip(docs, spans, strict=True):
        if any(span.doc is not doc for span in own):
            raise ValueError(
                f"get_spans returned a span of another Doc for the Doc {doc[:5].text!r}...; it must return the spans of"
                " each Doc in the order of the Docs"
            )
    return spans


def distinct_words(docs: Sequence[Doc]) -> tuple[list[str], np.ndarray]:
    """Return a list of the distinct words of some Docs, and an array, (tokens,). For each token of the Docs,
    the array contains the index of the token's word in the list."""
    types: list[str] = []
    rows: list[int] = []
    # A word has the same hash in every vocabulary, but only the vocabulary of a Doc with this word has its string.
    row_of: dict[int, int] = {}
    for doc in docs:
        orths, strings = doc.to_array(ORTH).tolist(), doc.vocab.strings
        for orth in orths:
            if orth not in row_of:
                row_of[orth] = len(types)
                types.append(strings[orth])
        rows += [row_of[orth] for orth in orths]
    return types, np.array(rows, dtype=np.int64)


@dataclass
class Sequences:
    """The spans of some Docs, without whitespace tokens. The biLM processes each span as a separate sequence."""

    types: list[str]
    """The distinct words of the Docs."""
    lengths: np.ndarray
    """Number of words of each span, at least 1, (spans,)."""
    type_of_word: np.ndarray
    """For each word of the spans, span after span: index of its type in the attribute `types`, (words,)."""
    tokens: np.ndarray
    """For each word of the spans, span after span: index of its token in the concatenated Docs, (words,). If spans
    overlap, the index of a token in several spans occurs several times."""
    n_tokens: int
    """Number of tokens of the Docs, including whitespace tokens."""
    overlap: bool = False
    """True if some token is in several spans."""

    @classmethod
    def of(cls, docs: Sequence[Doc], get_spans: SpanGetter | None) -> Sequences:
        """Create `Sequences` from Docs and from the spans that a span getter returns."""
        types, type_of_token = distinct_words(docs)
        kinds = word_kinds(types)[type_of_token]
        sizes = [len(doc) for doc in docs]
        overlap = False
        if get_spans in (None, rule_spans, wrapped_spans):
            # Without a Span for each sentence.
            starts = starts_of_kinds(kinds, sizes, wrapped=get_spans is wrapped_spans)
            tokens, spans = np.arange(len(kinds)), np.cumsum(starts)
        else:
            offsets = np.cumsum(sizes) - sizes
            borders = [
                (offset + span.start, offset + span.end)
                for offset, own in zip(offsets.tolist(), spans_of(docs, get_spans), strict=True)
                for span in own
            ]
            spans, tokens = _ranges(*np.array(borders, dtype=np.int64).reshape(-1, 2).T)
            overlap = bool((np.bincount(tokens) > 1).any())
        is_word = kinds[tokens] & SPACE == 0
        tokens, lengths = tokens[is_word], np.bincount(spans[is_word])
        return cls(types, lengths[lengths > 0], type_of_token[tokens], tokens, len(kinds), overlap)

    def batches(self, max_words: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of spans. A batch has at most `max_words` words, or contains only one longer span.

        Spans are sorted by length, longest first, so the spans of a batch have nearly equal lengths.

        Yields:
            For each batch, two arrays: the lengths of its spans, (spans,); and for each word of these spans,
            span after span, its place, which is its index in the attribute `type_of_word`, (words,).
        """
        ends = np.cumsum(self.lengths)
        order = np.argsort(-self.lengths, kind="stable")
        for part in batches(self.lengths[order].tolist(), max_words):
            group = order[part]
            _, places = _ranges(ends[group] - self.lengths[group], ends[group])
            yield self.lengths[group], places


def _ranges(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate the ranges of integers `starts[i]`, ..., `ends[i] - 1` for each i. Return two arrays of the
    same length: the index i of the range for each integer; and the integers themselves."""
    sizes = ends - starts
    ranges = np.repeat(np.arange(len(sizes)), sizes)
    shift = starts - (np.cumsum(sizes) - sizes)
    return ranges, np.arange(len(ranges)) + shift[ranges]


def batches(lengths: Sequence[int], max_words: int) -> Iterator[slice]:
    """Yield slices of consecutive texts of these lengths. Each slice has at most `max_words` words, or is one longer
    text."""
    start = total = 0
    for stop, length in enumerate(lengths):
        if stop > start and total + length > max_words:
            yield slice(start, stop)
            start, total = stop, 0
        total += length
    if start < len(lengths):
        yield slice(start, len(lengths))

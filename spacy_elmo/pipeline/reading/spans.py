"""Which spans of a Doc the biLM reads as sequences of their own: the getters of the `get_spans` option."""

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from spacy.tokens import Doc, Span

from ...text.sentences import starts_of_kinds, word_kinds
from .distinct_words import distinct_words

SpanGetter: TypeAlias = Callable[[list[Doc]], Iterable[Iterable[Span]]]
"""Docs -> the spans of each; the form of the span getters of spacy-transformers, which fit as they are."""


def rule_spans(docs: Sequence[Doc]) -> list[list[Span]]:
    """The default: sentences by the rule of `bilm.sentences`, which reads no annotation."""
    words, rows = distinct_words(docs)
    lengths = [len(doc) for doc in docs]
    starts = np.split(starts_of_kinds(word_kinds(words)[rows], lengths), np.cumsum(lengths)[:-1])
    return [_cut(doc, np.flatnonzero(own).tolist()) for doc, own in zip(docs, starts, strict=False)]


def _cut(doc: Doc, starts: list[int]) -> list[Span]:
    return [doc[start:end] for start, end in itertools.pairwise([*starts, len(doc)])]


def sentence_spans(docs: Sequence[Doc]) -> list[list[Span]]:
    """The sentences that a component has set, `doc.sents`."""
    return [list(doc.sents) for doc in docs]


def whole_docs(docs: Sequence[Doc]) -> list[list[Span]]:
    """Each Doc as one sequence."""
    return [[doc[:]] for doc in docs]


def window_spans(docs: Sequence[Doc], *, size: int, stride: int) -> list[list[Span]]:
    """Windows of `size` tokens, one every `stride` tokens, up to the one that ends the Doc, which may be shorter."""
    return [
        [doc[start : start + size] for start in range(0, max(len(doc) - size + stride, 1), stride)]
        for doc in docs
    ]


def sents_v1() -> SpanGetter:
    """`@misc = "spacy-elmo.sents.v1"`: `sentence_spans`. Whatever sets the sentences must come before elmo, in
    training too (`annotating_components`)."""
    return sentence_spans


def doc_v1() -> SpanGetter:
    """`@misc = "spacy-elmo.doc.v1"`: `whole_docs`."""
    return whole_docs


def windows_v1(size: int, stride: int) -> SpanGetter:
    """`@misc = "spacy-elmo.windows.v1"`: `window_spans`. A token in several windows gets the mean of its vectors there.

    Raises:
        ValueError: there would be nothing in a window, or tokens in none.
    """
    if not 1 <= stride <= size:
        raise ValueError(
            f"Windows of size = {size} with stride = {stride}: stride must be at least 1, and at most size, or some"
            " tokens would be in no window"
        )
    # No function in here, because it could not be pickled.
    return functools.partial(window_spans, size=size, stride=stride)

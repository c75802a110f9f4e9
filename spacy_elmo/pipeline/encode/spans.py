"""Span getters for the option `get_spans`. The biLM processes each span of a Doc as a separate sequence."""

import functools
import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc, Span

from ...text.sentences import starts_of_kinds, word_kinds
from ..factory_options import SpanGetter


def rule_spans(docs: Sequence[Doc]) -> list[list[Span]]:
    """Split each Doc into sentences with the rule in `text/sentences.py`, which uses no annotation. This is
    the default span getter."""
    words, rows = distinct_words(docs)
    lengths = [len(doc) for doc in docs]
    starts = np.split(starts_of_kinds(word_kinds(words)[rows], lengths), np.cumsum(lengths)[:-1])
    return [
        _cut(doc, np.flatnonzero(is_start).tolist())
        for doc, is_start in zip(docs, starts, strict=False)
    ]


def _cut(doc: Doc, starts: list[int]) -> list[Span]:
    return [doc[start:end] for start, end in itertools.pairwise([*starts, len(doc)])]


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
    """Return the span getter `sentence_spans`, for `@misc = "spacy-elmo.sents.v1"` in a config. The component
    that sets the sentences must run before `elmo`. So for training, list that component in
    `annotating_components`."""
    return sentence_spans


def doc_v1() -> SpanGetter:
    """Return the span getter `whole_docs`, for `@misc = "spacy-elmo.doc.v1"` in a config."""
    return whole_docs


def windows_v1(size: int, stride: int) -> SpanGetter:
    """Return the span getter `window_spans` with this size and stride, for `@misc = "spacy-elmo.windows.v1"`
    in a config. The biLM computes a vector for each token in each window. A token in several windows gets the
    mean of these vectors.

    Raises:
        ValueError: windows would be empty, or some tokens would be in no window.
    """
    if not 1 <= stride <= size:
        raise ValueError(
            f"Impossible windows of size = {size} with stride = {stride}: stride must be at least 1 and at most size,"
            " so that each token is in a window"
        )
    # Not a nested function, because it could not be pickled.
    return functools.partial(window_spans, size=size, stride=stride)


def spans_of(docs: Sequence[Doc], get_spans: SpanGetter | None) -> list[Iterable[Span]]:
    """Call a span getter, and return the spans of each Doc. If `get_spans` is None, `rule_spans` is called.

    Raises:
        ValueError: the span getter does not return one list of spans for each Doc.
    """
    spans = list((get_spans or rule_spans)(list(docs)))
    if len(spans) != len(docs):
        raise ValueError(
            f"get_spans returned spans for {len(spans)} of {len(docs)} Docs; it must return one list per Doc"
        )
    return spans


def distinct_words(docs: Sequence[Doc]) -> tuple[list[str], np.ndarray]:
    """Return a list of the distinct words of some Docs, and an array, (tokens,). For each token of the Docs,
    the array contains the index of the token's word in the list."""
    ends = np.cumsum([len(doc) for doc in docs])
    empty = np.zeros(0, dtype=np.uint64)
    orths = np.concatenate([empty, *(doc.to_array(ORTH) for doc in docs)])
    # A word has the same hash in every vocabulary, but only the vocabulary of a Doc with this word has its string.
    hashes, first, rows = np.unique(orths, return_index=True, return_inverse=True)
    owners = np.searchsorted(ends, first, side="right")
    strings = [doc.vocab.strings for doc in docs]
    return [strings[o][h] for o, h in zip(owners.tolist(), hashes.tolist(), strict=True)], rows

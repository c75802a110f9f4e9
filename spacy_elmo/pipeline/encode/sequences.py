"""Class that prepares the words of Docs as input for a biLM, and a function that computes the layers of these
words."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.types import Floats2d, Floats3d
from torch import Tensor

from ...bilm.model import BiLM
from ...bilm.overlap import write_means
from ...text.sentences import SPACE, word_kinds
from ..factory_options import SpanGetter
from .spans import distinct_words, spans_of

FirstState = Callable[[int], tuple[Tensor, Tensor] | None]
"""Function that takes a number of sequences, and returns the initial LSTM state of these sequences (the
argument `state` of `BiLM.forward_chunks`); None means zeros."""


@dataclass
class Sequences:
    """The spans of some Docs, without whitespace tokens. The biLM processes each span as a separate sequence."""

    words: list[str]
    """The distinct words of the Docs."""
    lengths: np.ndarray
    """Number of words of each span, at least 1, (spans,)."""
    rows: np.ndarray
    """For each occurrence of a word in the spans, span after span: index of the word in the attribute
    `words`, (occurrences,)."""
    tokens: np.ndarray
    """For each occurrence of a word in the spans, span after span: index of the token in the concatenated
    Docs, (occurrences,). If spans overlap, the index of a token in several spans occurs several times."""
    n_tokens: int
    """Number of tokens of the Docs, including whitespace tokens."""

    @classmethod
    def of(cls, docs: Sequence[Doc], get_spans: SpanGetter | None) -> Sequences:
        """Create `Sequences` from Docs and from the spans that a span getter returns.

        Raises:
            ValueError: `get_spans` returns wrong spans (see `spans_of`).
        """
        words, rows = distinct_words(docs)
        starts, ends = _borders(docs, get_spans)
        spans, tokens = _ranges(starts, ends)
        is_word = (word_kinds(words) & SPACE == 0)[rows[tokens]]
        lengths = np.bincount(spans[is_word], minlength=len(starts))
        return cls(words, lengths[lengths > 0], rows[tokens[is_word]], tokens[is_word], len(rows))

    @functools.cached_property
    def overlap(self) -> bool:
        """True if some token is in several spans."""
        return bool((np.bincount(self.tokens) > 1).any())

    def batches(self, max_tokens: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of spans. A batch has at most `max_tokens` words, or contains only one longer span.

        Spans are sorted by length, longest first, so the spans of a batch have nearly equal lengths.

        Yields:
            For each batch, two arrays: the lengths of its spans, (spans,); and for each word of these spans,
            span after span, the index of the word in the attribute `rows`, (words,).
        """
        ends = np.cumsum(self.lengths)
        order = np.argsort(-self.lengths, kind="stable")
        for group in _cut(order, self.lengths, max_tokens):
            _, indices = _ranges(ends[group] - self.lengths[group], ends[group])
            yield self.lengths[group], indices


def _borders(docs: Sequence[Doc], get_spans: SpanGetter | None) -> tuple[np.ndarray, np.ndarray]:
    offset, pairs = 0, []
    for doc, spans in zip(docs, spans_of(docs, get_spans), strict=True):
        pairs += [(offset + span.start, offset + span.end) for span in spans]
        offset += len(doc)
    borders = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return borders[:, 0], borders[:, 1]


def _ranges(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate the ranges of integers `starts[i]`, ..., `ends[i] - 1` for each i. Return two arrays of the
    same length: the index i of the range for each integer; and the integers themselves."""
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


def write_layers(
    bilm: BiLM,
    array: Floats2d | Floats3d,
    sequences: Sequences,
    max_words: int,
    *,
    first_state: FirstState,
    average: bool = False,
) -> Tensor:
    """Write the layers of every word to an array, and return a tensor that shares the memory of the array.

    A token in several spans gets the mean of its vectors.

    Args:
        bilm: the network. The returned tensor has an autograd graph if gradients are enabled and some
            parameter requires a gradient.
        array: zeros for all tokens of the Docs, (layers, tokens, width), or (tokens, width) if `average` is
            true.
        sequences: the spans of the Docs, and the words in these spans.
        max_words: number of words to process together (a chunk). In training, pass the number of all words,
            because no gradient flows from a chunk to the previous chunk.
        first_state: function that returns the initial LSTM state for a number of sequences (see
            `FirstState`).
        average: write the average of the layers instead of the layers.
    """
    target = torch.from_dlpack(array)
    by_token = target[None] if average else target
    # The order in which spans are computed depends on all Docs, so spans that overlap are added at the end.
    by_word = (
        by_token.new_empty((len(by_token), len(sequences.rows), by_token.shape[2]))
        if sequences.overlap
        else None
    )
    for words, layers in _chunks(bilm, sequences, max_words, first_state):
        some = [torch.stack(layers).mean(0)] if average else layers
        if by_word is None:
            _write(by_token, some, sequences.tokens[words])
        else:
            _write(by_word, some, words)
    if by_word is not None:
        write_means(by_token, by_word, sequences.tokens)
    return target


def _chunks(
    bilm: BiLM, sequences: Sequences, max_words: int, first_state: FirstState
) -> Iterator[tuple[np.ndarray, list[Tensor]]]:
    """Compute the layers in chunks of at most about `max_words` words in each direction.

    Yields:
        For each chunk: for the forward and the backward direction, the indices in `sequences.rows` of the
        words, (2, words); and a list that contains one tensor for each layer, (2, words, width of one
        direction).
    """
    token_ids = bilm.token_ids(sequences.words)
    for lengths, batch in sequences.batches(max_words):
        state = first_state(len(lengths))
        rows = sequences.rows[batch]
        for chunk in bilm.forward_chunks(token_ids, rows, lengths, max_words, state=state):
            yield batch[chunk.words], chunk.layers


def _write(target: Tensor, layers: Sequence[Tensor], rows: np.ndarray) -> None:
    """Write forward outputs to the first half of some vectors, and backward outputs to the second half.

    Args:
        target: the vectors of each layer, (layers, vectors, width).
        layers: for each layer, the outputs of both directions, (2, words, width of one direction).
        rows: for each direction, the index in `target` of the vector of each word, (2, words).
    """
    half = target.shape[2] // 2
    for direction, own in enumerate(rows):
        columns = target[:, :, direction * half : (direction + 1) * half]
        values = torch.stack([layer[direction] for layer in layers]).to(target)
        columns.index_copy_(1, torch.from_numpy(own).to(target.device), values)

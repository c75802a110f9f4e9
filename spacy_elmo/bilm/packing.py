"""Sentences as packed rows: no padding, longest sentence first, one time step after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

Lengths = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Packing:
    """The order in which both directions of a biLM process a batch of B sentences with N words.

    Sentence i of n words is the sequence `<S> w1 .. wn </S>`, and the batch is the concatenation of
    these sequences (N words and 2B boundaries). The forward direction processes a sequence from the left,
    the backward direction the same sequence from the right (reversed within its true length). Both
    take the same number of steps, so both are packed alike, as in torch's `PackedSequence`: row `offset[t] + rank` is
    step t of the sentence of that rank, where rank 0 is the longest sentence, and step t has `batch_sizes[t]` rows.
    """

    batch_sizes: list[int]
    """Number of sentences that have each step, a non-increasing count. The sum is M, the number of packed rows."""
    order: np.ndarray
    """(B,) the sentence at each rank."""
    positions: np.ndarray
    """(2, M) position in the concatenated sequences that each direction processes at each packed row."""
    word_rows: np.ndarray
    """(2, N) packed row at which each direction processes each word, words in the order of the batch."""

    @classmethod
    def of(cls, lengths: Lengths, *, closing: bool = False) -> Packing:
        """Pack sentences.

        Args:
            lengths: words of each sentence, boundaries not counted; 0 is allowed.
            closing: process the closing boundary too (`</S>` forward, `<S>` backward). Its output belongs
                to no word and predicts nothing; only a state that is carried to the next sentence, as in bilm-tf,
                needs it.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        order = np.argsort(-sizes, kind="stable")
        steps = sizes[order] + (2 if closing else 1)
        # The sequences longer than t: `steps` is non-increasing, so counting them is a search from its end.
        batch_sizes = len(steps) - np.searchsorted(
            steps[::-1], np.arange(steps.max(initial=0)), "right"
        )
        offsets = np.concatenate([[0], np.cumsum(batch_sizes)])
        step = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
        rank = np.arange(offsets[-1]) - offsets[step]
        first = np.concatenate([[0], np.cumsum(sizes + 2)])[:-1]
        last = first + sizes + 1
        positions = np.stack([first[order][rank] + step, last[order][rank] - step])
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        sentence = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(sentence)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
        word_rows = np.stack(
            [
                offsets[place] + ranks[sentence],
                offsets[sizes[sentence] + 1 - place] + ranks[sentence],
            ]
        )
        return cls(batch_sizes.tolist(), order, positions, word_rows)

    def chunks(self, max_words: int) -> Iterator[list[int]]:
        """Split `batch_sizes` into consecutive chunks of about `max_words` words, opening boundaries not counted.

        A step belongs to the chunk into which its last word falls: a batch of at most `max_words` words is one chunk.
        """
        last = np.cumsum(self.batch_sizes) - len(self.order) - 1
        starts = np.flatnonzero(np.diff(np.maximum(last, 0) // max_words, prepend=-1))
        for start, end in itertools.pairwise([*starts.tolist(), len(self.batch_sizes)]):
            yield self.batch_sizes[start:end]

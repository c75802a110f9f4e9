"""Sentences as packed rows: no padding, longest first, one time step after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

Lengths = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Packing:
    """The order in which both directions of a biLM read a batch.

    Sentence i of n words is the sequence `<S> w1 .. wn </S>`, and the batch is the concatenation of
    these sequences (N words and 2B boundaries). The forward direction reads a sequence from the left,
    the backward direction the same sequence from the right (reversed within its true length). Both
    take the same number of steps, so both are packed alike: row `offset[t] + rank` is step t of the
    sentence of that rank, where rank 0 is the longest sentence, and `rows[t]` sentences are still read at step t.
    """

    rows: list[int]
    """Sentences read at each step, falling. Their sum is M, the number of packed rows."""
    order: np.ndarray
    """(B,) the sentence at each rank."""
    reads: np.ndarray
    """(2, M) position in the concatenated sequences that each direction reads at each packed row."""
    words: np.ndarray
    """(2, N) packed row at which each direction has read each word, words in the order of the batch."""

    @classmethod
    def of(cls, lengths: Lengths, *, closing: bool = False) -> Packing:
        """Pack sentences.

        Args:
            lengths: words of each sentence, boundaries not counted; 0 is allowed.
            closing: read the closing boundary too (`</S>` forward, `<S>` backward). Its output belongs
                to no word and predicts nothing; only a state that is carried on, as bilm-tf does, needs it.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        order = np.argsort(-sizes, kind="stable")
        steps = sizes[order] + (2 if closing else 1)
        # rows[t]: the sequences longer than t; `steps` falls, so that is a search from its end.
        rows = len(steps) - np.searchsorted(steps[::-1], np.arange(steps.max(initial=0)), "right")
        offsets = np.concatenate([[0], np.cumsum(rows)])
        step = np.repeat(np.arange(len(rows)), rows)
        rank = np.arange(offsets[-1]) - offsets[step]
        first = np.concatenate([[0], np.cumsum(sizes + 2)])[:-1]
        last = first + sizes + 1
        reads = np.stack([first[order][rank] + step, last[order][rank] - step])
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        sentence = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(sentence)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
        words = np.stack(
            [
                offsets[place] + ranks[sentence],
                offsets[sizes[sentence] + 1 - place] + ranks[sentence],
            ]
        )
        return cls(rows=rows.tolist(), order=order, reads=reads, words=words)

    def cut(self, max_words: int) -> Iterator[list[int]]:
        """`rows` in parts that follow each other, the first boundaries not counted: a step belongs to the part in
        which its last word falls, so a batch of at most `max_words` words is one part."""
        last = np.cumsum(self.rows) - len(self.order) - 1
        starts = np.flatnonzero(np.diff(np.maximum(last, 0) // max_words, prepend=-1))
        for start, end in itertools.pairwise([*starts.tolist(), len(self.rows)]):
            yield self.rows[start:end]

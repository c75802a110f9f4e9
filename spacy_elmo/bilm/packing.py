"""Sentences as packed rows, without padding: one time step after the other, and the longest sentence first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

Lengths = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Packing:
    """The order in which both directions of a biLM process a batch of B sentences with N words.

    A sentence of n words is the sequence `<S> w1 .. wn </S>`. The batch is the concatenation of these
    sequences (N words and 2B boundaries). The forward direction processes a sequence from left to right, the
    backward direction from right to left. A direction starts with its opening boundary and ends with its
    closing boundary.

    Both directions take the same number of steps, so both are packed in the same way, as in torch's
    `PackedSequence`. Sentences are ranked by length, and rank 0 is the longest. Step t has `batch_sizes[t]`
    rows: one row for each sequence that has a step t, in the order of the ranks.
    """

    batch_sizes: list[int]
    """Number of sentences at each time step. This number never increases. The sum is M, the number of packed
    rows."""
    order: np.ndarray
    """Index of the sentence at each rank, (B,)."""
    positions: np.ndarray
    """For each direction and each packed row, the position in the concatenated sequences, (2, M)."""
    word_rows: np.ndarray
    """For each direction and each word of the batch, the packed row of the word, (2, N)."""

    @classmethod
    def of(cls, lengths: Lengths, *, closing: bool = False) -> Packing:
        """Compute the packed order of a batch of sentences.

        Args:
            lengths: number of words of each sentence, without boundaries; 0 is allowed.
            closing: also process the closing boundary (`</S>` forward, `<S>` backward). The output at this boundary
                belongs to no word and predicts nothing. The boundary is needed only if the state is carried to the next
                sentence, as in bilm-tf.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        order = np.argsort(-sizes, kind="stable")
        steps = sizes[order] + (2 if closing else 1)
        # Count the sequences with more than t steps. `steps` never increases, so a search from its end counts them.
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
        word_step = np.arange(len(sentence)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
        word_rows = np.stack(
            [
                offsets[word_step] + ranks[sentence],
                offsets[sizes[sentence] + 1 - word_step] + ranks[sentence],
            ]
        )
        return cls(batch_sizes.tolist(), order, positions, word_rows)

    def chunks(self, max_words: int) -> Iterator[list[int]]:
        """Split `batch_sizes` into consecutive chunks of about `max_words` words. Opening boundaries are not counted.

        A step is never split. If the limit is inside a step, the whole step belongs to the next chunk. A
        batch of at most `max_words` words is one chunk.
        """
        last = np.cumsum(self.batch_sizes) - len(self.order) - 1
        starts = np.flatnonzero(np.diff(np.maximum(last, 0) // max_words, prepend=-1))
        for start, end in itertools.pairwise([*starts.tolist(), len(self.batch_sizes)]):
            yield self.batch_sizes[start:end]

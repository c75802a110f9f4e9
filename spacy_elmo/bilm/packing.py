"""The order in which a biLM processes a batch, without padding: by time step, and within a step from the
longest sentence to the shortest."""

from __future__ import annotations

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
    `PackedSequence`. Sentences are ranked by length, and rank 0 is the longest. A packed tensor has M rows,
    one for each token that a direction processes. The rows of time step t belong to the first
    `batch_sizes[t]` ranks.
    """

    batch_sizes: list[int]
    """Number of sentences with a token at each time step; this number never increases. The sum is M."""
    order: np.ndarray
    """Index of the sentence at each rank, (B,)."""
    positions: np.ndarray
    """Position of the token of each packed row in the concatenated sequences, for each direction, (2, M)."""

    @classmethod
    def of(cls, lengths: Lengths, *, closing: bool = False) -> Packing:
        """Compute the packed order of a batch of sentences.

        Args:
            lengths: number of words of each sentence, without boundaries; 0 is allowed.
            closing: also process the closing boundary (`</S>` forward, `<S>` backward). The output at this
                boundary belongs to no word and predicts nothing. The boundary is needed only if the next
                sentence starts with the final LSTM state of this sentence, as in bilm-tf.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        order = np.argsort(-sizes, kind="stable")
        steps = sizes[order] + (2 if closing else 1)
        # Count the sequences with more than t steps. `steps` never increases, so a search from its end counts them.
        batch_sizes = len(steps) - np.searchsorted(
            steps[::-1], np.arange(max(steps[:1], default=0)), "right"
        )
        step = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
        rank = np.arange(len(step)) - (np.cumsum(batch_sizes) - batch_sizes)[step]
        sentence, last = order[rank], np.cumsum(sizes + 2) - 1
        positions = np.array([(last - sizes - 1)[sentence] + step, last[sentence] - step])
        return cls(batch_sizes.tolist(), order, positions)

    def chunks(self, max_words: int) -> Iterator[list[int]]:
        """Split `batch_sizes` into consecutive parts of about `max_words` words each, without opening
        boundaries.

        A time step is never split. If the limit is inside a step, the whole step belongs to the next part. A
        batch of at most `max_words` words is one part.
        """
        start, words, limit = 0, -len(self.order), max_words
        for end, n in enumerate(self.batch_sizes):
            words += n
            if words > limit:
                yield self.batch_sizes[start:end]
                start, limit = end, -(-words // max_words) * max_words
        if self.batch_sizes:
            yield self.batch_sizes[start:]

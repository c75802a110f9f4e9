"""The language modelling objective: batches, targets and the loss of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..bilm.head import Head, Negatives
from ..bilm.likelihood import softmax_classes
from ..bilm.model import BiLM, PackedOutput
from ..bilm.words.char_ids import UNK


@dataclass
class TrainBatch:
    """B sentences of N words, of which K are distinct."""

    token_ids: Tensor
    """(K, ...) what the token encoder reads."""
    classes: np.ndarray
    """(K + 2,) row of the softmax of each distinct word, then of `<S>` and `</S>`."""
    words: np.ndarray
    """(N,) distinct word at each place."""
    lengths: np.ndarray
    """(B,)."""


class Batcher:
    """Sentences of type ids -> batches, for a biLM and a softmax over a vocabulary.

    Args:
        types: the words that the ids name.
        vocabulary: the words of the softmax, `<S>`, `</S>` and `<UNK>` among them; any other word is `<UNK>` as a
            target, and itself as input.
    """

    def __init__(self, bilm: BiLM, types: Sequence[str], vocabulary: Sequence[str]) -> None:
        self._token_ids = bilm.token_ids(types)
        rows = {word: row for row, word in enumerate(vocabulary)}
        self.unk = rows[UNK]
        """Row of `<UNK>`."""
        self._classes = softmax_classes(types, rows)

    def __call__(self, ids: np.ndarray, lengths: np.ndarray) -> TrainBatch:
        """TrainBatch of `ids` (N,) in sentences of `lengths` (B,)."""
        types, words = np.unique(ids, return_inverse=True)
        rows = types.astype(np.int64)
        classes = np.append(self._classes[rows], self._classes[-2:])
        return TrainBatch(self._token_ids[torch.from_numpy(rows)], classes, words, lengths)


def targets(reading: PackedOutput, classes: np.ndarray) -> np.ndarray:
    """(2, M) the class that each direction predicts at each packed row: the next word, or the closing boundary
    (`</S>` forward, `<S>` backward)."""
    forward, backward = reading.packing.positions
    return classes[np.stack([reading.sequence[forward + 1], reading.sequence[backward - 1]])]


def loss_sum(
    bilm: BiLM,
    head: Head,
    batch: TrainBatch,
    negatives: Sequence[Negatives] | None,
    dropout: float,
) -> Tensor:
    """Sum over targets and both directions of the softmax loss in nats (bilm-tf `training.py`); a scalar.

    Args:
        negatives: of the sampled softmax, one draw for each direction; None: the full softmax.
    """
    reading = bilm.forward_packed(batch.token_ids, batch.words, batch.lengths, dropout=dropout)
    hidden = nn.functional.dropout(reading.outputs[-1], dropout, training=dropout > 0)
    goals = torch.from_numpy(targets(reading, batch.classes)).to(hidden.device)
    if negatives is None:
        return _full_loss(head, hidden.flatten(0, 1), goals.flatten())
    losses = [head.sampled_loss(*pair) for pair in zip(hidden, goals, negatives, strict=True)]
    return torch.stack(losses).sum()


def _full_loss(head: Head, hidden: Tensor, goals: Tensor) -> Tensor:
    # Logits are computed again in the backward pass: all of them at once would be gigabytes.
    rows = head.rows_per_block
    losses = [
        checkpoint(head.full_loss, *pair, use_reentrant=False, preserve_rng_state=False)
        for pair in zip(hidden.split(rows), goals.split(rows), strict=True)
    ]
    return torch.cat(losses).sum()

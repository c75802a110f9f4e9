"""Language modelling objective: batches, targets and the loss of a step."""

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
    """B sentences of N words in total, of which K are distinct."""

    token_ids: Tensor
    """(K, ...) inputs of the token encoder."""
    classes: np.ndarray
    """(K + 2,) softmax row of each distinct word, then of `<S>` and `</S>`."""
    words: np.ndarray
    """(N,) index of the distinct word at each position."""
    lengths: np.ndarray
    """(B,) number of words of each sentence."""


class Batcher:
    """Converter of sentences of type ids to batches, for a biLM and a softmax over a vocabulary.

    Args:
        types: the word of each id.
        vocabulary: the words of the softmax, including `<S>`, `</S>` and `<UNK>`. Any other word is `<UNK>` as a
            target; as input it remains itself.
    """

    def __init__(self, bilm: BiLM, types: Sequence[str], vocabulary: Sequence[str]) -> None:
        self._token_ids = bilm.token_ids(types)
        rows = {word: row for row, word in enumerate(vocabulary)}
        self.unk = rows[UNK]
        """Softmax row of `<UNK>`."""
        self._classes = softmax_classes(types, rows, bilm.config.spelling)

    def __call__(self, ids: np.ndarray, lengths: np.ndarray) -> TrainBatch:
        """Build a batch.

        Args:
            ids: (N,) types of the words of B sentences, one sentence after the other.
            lengths: (B,) number of words of each.
        """
        types, words = np.unique(ids, return_inverse=True)
        rows = types.astype(np.int64)
        classes = np.append(self._classes[rows], self._classes[-2:])
        return TrainBatch(self._token_ids[torch.from_numpy(rows)], classes, words, lengths)


def targets(output: PackedOutput, classes: np.ndarray) -> np.ndarray:
    """Return (2, M) the class that each direction predicts at each packed row.

    It is that of the next word, or of the closing boundary (`</S>` forward, `<S>` backward).
    """
    forward, backward = output.packing.positions
    return classes[np.stack([output.sequence[forward + 1], output.sequence[backward - 1]])]


def loss_sum(
    bilm: BiLM,
    head: Head,
    batch: TrainBatch,
    negatives: Sequence[Negatives] | None,
    dropout: float,
) -> Tensor:
    """Return the softmax loss in nats (bilm-tf `training.py`), summed over all targets of both directions.

    Args:
        negatives: one draw per direction for the sampled softmax; None: the full softmax.
    """
    output = bilm.forward_packed(batch.token_ids, batch.words, batch.lengths, dropout=dropout)
    hidden = nn.functional.dropout(output.outputs[-1], dropout, training=dropout > 0)
    classes = torch.from_numpy(targets(output, batch.classes)).to(hidden.device)
    if negatives is None:
        return _full_loss(head, hidden.flatten(0, 1), classes.flatten())
    losses = [head.sampled_loss(*pair) for pair in zip(hidden, classes, negatives, strict=True)]
    return torch.stack(losses).sum()


def _full_loss(head: Head, hidden: Tensor, classes: Tensor) -> Tensor:
    # Logits are recomputed in the backward pass: keeping all of them would take gigabytes.
    rows = head.rows_per_block
    losses = [
        checkpoint(head.full_loss, *pair, use_reentrant=False, preserve_rng_state=False)
        for pair in zip(hidden.split(rows), classes.split(rows), strict=True)
    ]
    return torch.cat(losses).sum()

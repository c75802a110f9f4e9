"""The language modelling objective: batches, targets, the sampled loss of a step and held-out perplexity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..bilm.char_ids import BOS, EOS, UNK
from ..bilm.head import Head, Negatives
from ..bilm.model import BiLM, Reading
from .corpus import Sentences

_EVAL_BATCH_TOKENS = 4096


@dataclass
class Batch:
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
        self._boundaries = [rows[BOS], rows[EOS]]
        self._classes = np.array([rows.get(word, self.unk) for word in types], dtype=np.int64)

    def __call__(self, ids: np.ndarray, lengths: np.ndarray) -> Batch:
        """Batch of `ids` (N,) in sentences of `lengths` (B,)."""
        types, words = np.unique(ids, return_inverse=True)
        classes = np.append(self._classes[types], self._boundaries)
        return Batch(
            self._token_ids[torch.from_numpy(types.astype(np.int64))], classes, words, lengths
        )


def targets(reading: Reading, classes: np.ndarray) -> np.ndarray:
    """(2, M) the class that each direction predicts at each packed row: the next word, or the closing boundary
    (`</S>` forward, `<S>` backward)."""
    forward, backward = reading.packing.reads
    return classes[np.stack([reading.sequence[forward + 1], reading.sequence[backward - 1]])]


def sampled_loss(
    bilm: BiLM, head: Head, batch: Batch, negatives: Sequence[Negatives], dropout: float
) -> Tensor:
    """Mean over targets of the sampled softmax loss, and over the two directions (bilm-tf `training.py`); a scalar.

    Args:
        negatives: one draw for each direction.
    """
    reading = bilm.read(batch.token_ids, batch.words, batch.lengths, dropout=dropout)
    hidden = nn.functional.dropout(reading.outputs[-1], dropout, training=dropout > 0)
    goals = torch.from_numpy(targets(reading, batch.classes)).to(hidden.device)
    losses = [head.sampled_loss(*pair) for pair in zip(hidden, goals, negatives, strict=True)]
    return torch.stack(losses).sum() / goals.numel()


@dataclass(frozen=True)
class Perplexity:
    """Held-out full-softmax perplexity. Targets are the words and the closing boundary of each sentence; `<UNK>` is
    one class."""

    forward: float
    backward: float
    mean: float
    """exp of the average of both cross-entropies."""
    targets: int
    """Per direction."""
    unk_share: float
    """Of the targets, in either direction."""
    forward_known: float
    backward_known: float
    mean_known: float
    """The same with `<UNK>` targets left out of the mean."""
    vocab_size: int


@torch.no_grad()
def perplexity(bilm: BiLM, head: Head, batcher: Batcher, sentences: Sentences) -> Perplexity:
    """Score every target of `sentences` in both directions.

    Raises:
        ValueError: there is no sentence.
    """
    if not len(sentences.lengths):
        raise ValueError("No held-out sentence to score")
    total, known, n_known = np.zeros(2), np.zeros(2), 0
    rows = np.argsort(sentences.lengths, kind="stable")
    number = (np.cumsum(sentences.lengths[rows]) - 1) // _EVAL_BATCH_TOKENS
    for part in np.split(rows, np.flatnonzero(np.diff(number)) + 1):
        batch = batcher(*sentences.take(part))
        reading = bilm.read(batch.token_ids, batch.words, batch.lengths)
        goals = targets(reading, batch.classes)
        for direction in (0, 1):
            goal = torch.from_numpy(goals[direction]).to(bilm.device)
            losses = head.full_loss(reading.outputs[-1][direction], goal).double()
            total[direction] += losses.sum().item()
            known[direction] += losses[goal != batcher.unk].sum().item()
        n_known += int((goals[0] != batcher.unk).sum())
    count = int(sentences.lengths.sum()) + len(sentences.lengths)
    forward, backward, forward_known, backward_known = *(total / count), *(known / max(n_known, 1))
    return Perplexity(
        forward=_exp(forward),
        backward=_exp(backward),
        mean=_exp((forward + backward) / 2),
        targets=count,
        unk_share=1 - n_known / count,
        forward_known=_exp(forward_known),
        backward_known=_exp(backward_known),
        mean_known=_exp((forward_known + backward_known) / 2),
        vocab_size=len(head.weight),
    )


def _exp(mean_loss: float) -> float:
    """A model that has diverged is infinitely perplexed; `math.exp` would raise."""
    with np.errstate(over="ignore"):
        return float(np.exp(mean_loss))

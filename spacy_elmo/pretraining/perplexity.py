"""Held-out perplexity of a biLM under the full softmax, for sentences of word ids, and for text files of any
size."""

from __future__ import annotations

import contextlib
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..bilm.head import Head
from ..bilm.likelihood import build_language_model, log_probabilities
from ..bilm.model import MAX_WORDS, BiLM
from ..bilm.weights import Weights
from .config import Prepare
from .corpus import Batcher, Sentences
from .tokenize import PassageTokenizer, tokenize_files

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Perplexity:
    """Held-out perplexity under the full softmax. The targets are the words of each sentence and the boundary
    at its end (`</S>` forward, `<S>` backward). All unknown words have one class, `<UNK>`."""

    forward: float
    backward: float
    mean: float
    """Perplexity of both directions: exp of the average of the forward and the backward cross-entropy."""
    targets: int
    """Number of targets per direction."""
    unk_share: float
    """Share of `<UNK>` among the targets, the same in both directions."""
    forward_known: float
    backward_known: float
    mean_known: float
    """`forward_known`, `backward_known` and `mean_known` are the perplexities without `<UNK>` targets."""
    vocab_size: int


class Tally(NamedTuple):
    """Loss and number of targets of a text, from which its perplexity is computed; with and without `<UNK>` targets.
    The tallies of several texts can be added up by `+`."""

    losses: np.ndarray
    """Sums of the cross-entropies in nats: (all targets, known targets) x (forward, backward), (2, 2) float64."""
    targets: np.ndarray
    """Number of all targets and of the known targets, per direction, (2,)."""

    def __add__(self, other: tuple[Any, ...]) -> Tally:
        return Tally(*map(operator.add, self, other))

    def perplexity(self, vocab_size: int) -> Perplexity:
        """Compute the perplexity. The result also contains the number of softmax classes, `vocab_size`."""
        targets, known = self.targets.tolist()
        if not targets:
            raise ValueError("The text contains no sentence, so there is nothing to evaluate")
        means = self.losses / np.maximum(self.targets, 1)[:, None]
        # Infinity if the model has diverged, where `math.exp` would raise an error.
        with np.errstate(over="ignore"):
            (forward, backward), (forward_known, backward_known) = np.exp(means).tolist()
            mean, mean_known = np.exp(means.mean(1)).tolist()
        return Perplexity(
            forward=forward,
            backward=backward,
            mean=mean,
            targets=targets,
            unk_share=1 - known / targets,
            forward_known=forward_known,
            backward_known=backward_known,
            mean_known=mean_known,
            vocab_size=vocab_size,
        )


NOTHING = Tally(np.zeros((2, 2)), np.zeros(2, dtype=np.int64))


@torch.no_grad()
def tally_of(bilm: BiLM, head: Head, batcher: Batcher, sentences: Sentences) -> Tally:
    """Add up the cross-entropies of all targets in `sentences`, forward and backward, and count the
    targets."""
    total = NOTHING
    if not len(sentences.lengths):
        return total
    rows = np.argsort(sentences.lengths, kind="stable")
    number = (np.cumsum(sentences.lengths[rows]) - 1) // MAX_WORDS
    for part in np.split(rows, np.flatnonzero(np.diff(number)) + 1):
        batch = batcher(*sentences.take(part))
        scores = log_probabilities(
            bilm, head, bilm.encode(batch.token_ids), batch.classes, batch.type_of_word, batch.lengths,
            max_words=MAX_WORDS,
        )  # fmt: skip
        known = batch.classes[batch.type_of_word] != batcher.unk
        words, closing = scores.words.astype(np.float64), scores.closing.astype(np.float64).sum(1)
        losses = -np.stack([words.sum(1), words[:, known].sum(1)]) - closing
        total += Tally(losses, np.array([len(known), known.sum()]) + len(part))
    return total


def perplexity(bilm: BiLM, head: Head, batcher: Batcher, sentences: Sentences) -> Perplexity:
    """Return the perplexity of a biLM and its softmax head on `sentences`."""
    return tally_of(bilm, head, batcher, sentences).perplexity(len(head.weight))


def evaluate(
    weights: Weights, files: list[Path], settings: Prepare, *, device: torch.device = _CPU
) -> Tally:
    """Return the `Tally` of text files, which can be larger than memory. The weights need a softmax head."""
    bilm, head = build_language_model(weights)
    bilm, head = bilm.to(device), head.to(device)
    total = NOTHING
    with contextlib.closing(tokenize_files(files, PassageTokenizer(settings))) as texts:
        for text in texts:
            sentences = Sentences(text.words, np.append(0, np.cumsum(text.lengths)))
            batcher = Batcher(bilm, text.types, weights.vocabulary)
            total += tally_of(bilm, head, batcher, sentences)
    return total

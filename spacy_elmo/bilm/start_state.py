"""Where a biLM starts to read: a mean state, for those that were trained with their state carried on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .model import BiLM

# Texts that are read side by side, so that a step is a product of matrices.
_STREAMS = 16
# Sentences of each text after which nothing is left of the zeros that it began with.
BURN_IN = 3


@dataclass(frozen=True)
class StartState:
    """The state of both directions before the first boundary, the same for every sentence."""

    h: Tensor
    """(L, 2, P)"""
    c: Tensor
    """(L, 2, C)"""

    def to(self, dtype: torch.dtype) -> StartState:
        """The same numbers in another type."""
        return StartState(self.h.to(dtype), self.c.to(dtype))

    def repeated(self, sentences: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """As `BiLM.read` takes it for a batch of B sentences: h (L, 2, B, P) and c (L, 2, B, C), float32."""
        h, c = (
            t.to(device, torch.float32)[:, :, None].expand(-1, -1, sentences, -1)
            for t in (self.h, self.c)
        )
        return h, c


@torch.no_grad()
def warm_start(bilm: BiLM, sentences: Sequence[Sequence[str]]) -> StartState:
    """The mean of the states with which a biLM comes to its sentences when it carries them on.

    The sentences are cut into up to 16 texts, which are read side by side as bilm-tf and AllenNLP read a batch: each
    direction reads every sentence with both of its boundaries, the backward one from its end, and starts the next with
    the state that it was left in. That state is what the mean is taken of, h and c by themselves, for each layer and
    direction; every sentence counts once, but for the first three of each text, whose states may remember the zeros
    before them. The result follows from the arguments alone. A mean of clipped values lies within the clips.

    The second boundary is read because bilm-tf and AllenNLP read it wherever they give vectors, and carry the state
    on from there. (bilm-tf's trainer leaves it out.)

    Args:
        bilm: in evaluation mode, as `Weights.bilm` gives it.
        sentences: words of sentences, in the order of the text.

    Raises:
        ValueError: there are too few of them.
    """
    if len(sentences) <= BURN_IN:
        raise ValueError(
            f"too few sentences for a start state: {len(sentences)}, and the first {BURN_IN} of a text do not count."
            " Give a text of some hundreds"
        )
    total_h, total_c = (
        torch.zeros(bilm.config.layers, 2, size, dtype=torch.float64)
        for size in (bilm.config.projection, bilm.config.dim)
    )
    count = 0
    for step, (h, c) in enumerate(_carried(bilm, _texts(sentences))):
        if step >= BURN_IN:
            total_h += h.double().sum(2).cpu()
            total_c += c.double().sum(2).cpu()
            count += h.shape[2]
    return StartState((total_h / count).float(), (total_c / count).float())


def _texts(sentences: Sequence[Sequence[str]]) -> list[Sequence[Sequence[str]]]:
    """The sentences in parts that follow each other, longer ones first, none so short that no sentence of it counts."""
    parts = min(_STREAMS, len(sentences) // (BURN_IN + 1))
    borders = [places[0] for places in np.array_split(np.arange(len(sentences)), parts)]
    return [sentences[s:e] for s, e in zip(borders, [*borders[1:], None], strict=True)]


def _carried(bilm: BiLM, texts: list[Sequence[Sequence[str]]]) -> Iterator[tuple[Tensor, Tensor]]:
    """h (L, 2, B, P) and c (L, 2, B, C) after the first sentence of B texts, after the second, and so on."""
    state = None
    for step in range(len(texts[0])):
        batch = [text[step] for text in texts if step < len(text)]
        words = [word for sentence in batch for word in sentence]
        rows = {word: row for row, word in enumerate(dict.fromkeys(words))}
        if state is not None:
            h, c = state
            state = h[:, :, : len(batch)], c[:, :, : len(batch)]
        reading = bilm.read(
            bilm.token_ids(list(rows)),
            np.array([rows[word] for word in words], dtype=np.int64),
            [len(sentence) for sentence in batch],
            state=state,
            closing=True,
        )
        state = reading.state
        yield state

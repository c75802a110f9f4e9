"""Estimation of the LSTM state at the start of a sentence, for biLMs that were trained with each sentence starting
from the final LSTM state of the previous sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from ..bilm.model import BiLM
from ..bilm.weights import StartState

# Number of texts that are processed in parallel, so that a step multiplies matrices.
_STREAMS = 16
# Number of first sentences of each text that are skipped, because their states depend on the initial zeros.
_BURN_IN = 3


@torch.no_grad()
def mean_start_state(bilm: BiLM, sentences: Sequence[Sequence[str]]) -> StartState:
    """Compute the mean LSTM state at the start of a sentence in running text.

    In running text, each sentence starts with the final state of the previous sentence. The result is the
    mean of these final states, for each layer and direction.

    The sentences are divided into up to 16 texts, which are processed in parallel. The first three sentences
    of each text are left out of the mean, because their final states still depend on the initial zeros. Both
    boundaries of each sentence are processed, as in bilm-tf and AllenNLP when they compute vectors.

    Args:
        bilm: a network in evaluation mode, as `Weights.build_bilm` returns it.
        sentences: the words of each sentence, in the order of the text.
    """
    if len(sentences) <= _BURN_IN:
        raise ValueError(
            f"too few sentences for a start state: {len(sentences)}, of which the first {_BURN_IN} are skipped. Use a"
            " text of some hundreds of sentences"
        )
    total_h, total_c = (
        torch.zeros(bilm.config.layers, 2, size, dtype=torch.float64)
        for size in (bilm.config.projection, bilm.config.dim)
    )
    count = 0
    for step, (h, c) in enumerate(_carried_states(bilm, _texts(sentences))):
        if step >= _BURN_IN:
            total_h += h.double().sum(2).cpu()
            total_c += c.double().sum(2).cpu()
            count += h.shape[2]
    return StartState((total_h / count).float(), (total_c / count).float())


def _texts(sentences: Sequence[Sequence[str]]) -> list[Sequence[Sequence[str]]]:
    """Split the sentences into up to 16 consecutive texts of at least four sentences, longer texts first."""
    texts = min(_STREAMS, len(sentences) // (_BURN_IN + 1))
    starts = [rows[0] for rows in np.array_split(np.arange(len(sentences)), texts)]
    return [sentences[s:e] for s, e in zip(starts, [*starts[1:], None], strict=True)]


def _carried_states(
    bilm: BiLM, texts: list[Sequence[Sequence[str]]]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Process the next sentence of each text in parallel, and yield the final LSTM states h (layers, 2, B,
    projection) and c (layers, 2, B, cells) of the B texts that still have a sentence."""
    state = None
    for step in range(len(texts[0])):
        batch = [text[step] for text in texts if step < len(text)]
        words = [word for sentence in batch for word in sentence]
        rows = {word: row for row, word in enumerate(dict.fromkeys(words))}
        if state is not None:
            h, c = state
            state = h[:, :, : len(batch)], c[:, :, : len(batch)]
        state = bilm.forward_packed(
            bilm.token_ids(list(rows)),
            np.array([rows[word] for word in words], dtype=np.int64),
            [len(sentence) for sentence in batch],
            state=state,
            closing=True,
        ).state
        yield state

"""Estimation of the LSTM state at the start of a sentence, for biLMs that were trained with each sentence starting
from the final LSTM state of the previous sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

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

    The sentences are divided into up to 16 texts of the same number of sentences, which are processed in parallel. The
    first three sentences of each text are left out of the mean, because their final states still depend on the initial
    zeros. Both boundaries of each sentence are processed, as in bilm-tf and AllenNLP when they compute vectors.

    Args:
        bilm: a network in evaluation mode, as `Weights.build_bilm` returns it.
        sentences: the words of each sentence, in the order of the text.
    """
    if len(sentences) <= _BURN_IN:
        raise ValueError(
            f"too few sentences for a start state: {len(sentences)}, of which the first {_BURN_IN} are skipped. Use a"
            " text of some hundreds of sentences"
        )
    n_texts = min(_STREAMS, len(sentences) // (_BURN_IN + 1))
    length = len(sentences) // n_texts
    texts = [sentences[n * length : (n + 1) * length] for n in range(n_texts)]
    totals = [
        torch.zeros(bilm.config.layers, 2, size, dtype=torch.float64)
        for size in (bilm.config.projection, bilm.config.dim)
    ]
    state = None
    for step, batch in enumerate(zip(*texts, strict=True)):
        words = [word for sentence in batch for word in sentence]
        rows = {word: row for row, word in enumerate(dict.fromkeys(words))}
        state = bilm.forward_packed(
            bilm.encode_words(list(rows)),
            np.array([rows[word] for word in words], dtype=np.int64),
            [len(sentence) for sentence in batch],
            state=state,
            closing=True,
        ).state
        if step >= _BURN_IN:
            for total, part in zip(totals, state, strict=True):
                total += part.double().sum(2).cpu()
    h, c = ((total / (n_texts * (length - _BURN_IN))).float() for total in totals)
    return StartState(h, c)

"""Log-probability of each word under a biLM with a head, given the words before it or after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .head import Head
from .model import BiLM, sequences
from .packing import Lengths
from .spelling import BOS, EOS, UNK, Spelling
from .weights import Weights


@dataclass(frozen=True)
class LogProbabilities:
    """Natural logarithms of the probabilities of N words in B sentences. Index 0 is forward, 1 backward."""

    words: np.ndarray
    """Log-probability of each word, (2, N) float32: first given the words before it in the sentence, then
    given the words after it."""
    closing: np.ndarray
    """Log-probability of the boundary that ends each sentence (`</S>` or `<S>`), (2, B) float32."""


def build_language_model(weights: Weights) -> tuple[BiLM, Head]:
    """Build the network and the head of a weights file.

    Raises:
        ValueError: the file has no head, or the vocabulary lacks `<S>`, `</S>` or `<UNK>`.
    """
    head = weights.build_head()
    if head is None:
        raise ValueError(
            "These weights have no head, the softmax that predicts the next word. Most files of other programs have"
            " none. Use a bundled biLM, or model-best.safetensors of a pretraining run"
        )
    if missing := [word for word in (BOS, EOS, UNK) if word not in weights.vocabulary]:
        raise ValueError(f"The vocabulary of the head has no {', '.join(missing)}")
    return weights.build_bilm(), head


def softmax_classes(
    types: Sequence[str], vocabulary_rows: Mapping[str, int], spelling: Spelling
) -> np.ndarray:
    """Return the vocabulary indices of K types, `<S>` and `</S>`, which the head predicts, (K + 2,).

    Args:
        types: K distinct words. Unknown words get the index of `<UNK>`.
        vocabulary_rows: index of each word in the vocabulary.
        spelling: the spelling rule of the biLM. The words of the vocabulary already follow this rule.
    """
    unk = vocabulary_rows[UNK]
    return np.array(
        [vocabulary_rows.get(word, unk) for word in [*spelling(types), BOS, EOS]], dtype=np.int64
    )


@torch.no_grad()
def log_probabilities(
    bilm: BiLM,
    head: Head,
    types: Tensor,
    classes: np.ndarray,
    type_of_word: np.ndarray,
    lengths: Lengths,
    *,
    max_words: int,
) -> LogProbabilities:
    """Compute log-probabilities of all words in a batch of sentences, with the full softmax.

    Also compute the log-probability of the boundary that ends each sentence (`</S>` forward, `<S>` backward).

    Args:
        types: (K + 2, P) vectors of the K types and the boundaries, from `BiLM.encode` or `BiLM.encode_words`.
        classes: (K + 2,) the result of `softmax_classes` for these types.
        type_of_word: (N,) for each word of the batch, the index of its type in `types`, sentence after sentence.
        lengths: number of words of each sentence; 0 is allowed.
        max_words: approximate number of words that are processed together. A larger batch is processed in
            chunks, with the same result.
    """
    targets = classes[sequences(type_of_word, lengths, len(types) - 2)]
    # Positions in the concatenated sequences `<S> w1 .. wn </S>`: of the boundaries, and of the words.
    last = np.cumsum(np.asarray(lengths, dtype=np.int64) + 2) - 1
    first = np.append(0, last + 1)[:-1]
    word_positions = np.delete(np.arange(len(targets)), np.stack([first, last]))
    scores = np.empty((2, len(targets)), dtype=np.float32)
    opening = head.log_softmax(opening_outputs(bilm)).cpu().numpy()
    for direction, predicted in enumerate((first + 1, last - 1)):
        scores[direction, predicted] = opening[direction, targets[predicted]]
    for chunk in bilm.forward_chunks(types, type_of_word, lengths, max_words):
        for direction, hidden in enumerate(torch.from_dlpack(chunk.layers[-1])):
            predicted = word_positions[chunk.places[direction]] + (1, -1)[direction]
            chunk_targets = torch.from_numpy(targets[predicted]).to(hidden.device)
            scores[direction, predicted] = -head.full_loss(hidden, chunk_targets).cpu().numpy()
    return LogProbabilities(
        words=scores[:, word_positions], closing=np.stack([scores[0, last], scores[1, first]])
    )


@torch.no_grad()
def opening_outputs(bilm: BiLM) -> Tensor:
    """Return the output of the top LSTM layer after the boundary that each direction processes first (`<S>`
    forward, `</S>` backward), (2, projection). This output is the same for every sentence."""
    no_words = np.zeros(0, dtype=np.int64)
    outputs = bilm.forward_packed(bilm.encode_words([]), no_words, [0]).outputs
    return torch.from_dlpack(outputs[-1])[:, 0]

"""Log-probabilities of words under a biLM and its head, given the words before or after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .head import Head
from .model import BiLM
from .packing import Lengths
from .weights import Weights
from .words.char_ids import BOS, EOS, UNK
from .words.spelling import Spelling


@dataclass(frozen=True)
class LogProbabilities:
    """Natural logarithms of the probabilities of N words in B sentences, by direction: forward, backward."""

    words: np.ndarray
    """(2, N) float32, of each word given the words before it in its sentence, and given those after it."""
    closing: np.ndarray
    """(2, B) float32, of the closing boundary of each sentence: `</S>` forward, `<S>` backward."""


def build_language_model(weights: Weights) -> tuple[BiLM, Head]:
    """Build the network and the head of a weights file.

    Raises:
        ValueError: the file has no head, or its vocabulary lacks a boundary or `<UNK>`.
    """
    head = weights.build_head()
    if head is None:
        raise ValueError(
            "These weights have no head, the softmax that predicts the next word: most files of other programs come"
            " without. A bundled biLM has one, and so has the model-best.safetensors of a pretraining run"
        )
    if missing := [word for word in (BOS, EOS, UNK) if word not in weights.vocabulary]:
        raise ValueError(f"The vocabulary of the head lacks {', '.join(missing)}")
    return weights.build_bilm(), head


def softmax_classes(
    words: Sequence[str], vocabulary_rows: Mapping[str, int], spelling: Spelling
) -> np.ndarray:
    """Return (K + 2,) the softmax row of each of K words (unknown words: that of `<UNK>`), then of `<S>` and `</S>`.

    Args:
        words: K distinct words.
        vocabulary_rows: row of each word of the vocabulary.
        spelling: the rule of the biLM, by which the words of the vocabulary are spelled.
    """
    unk = vocabulary_rows[UNK]
    return np.array(
        [vocabulary_rows.get(word, unk) for word in [*spelling(words), BOS, EOS]], dtype=np.int64
    )


@torch.no_grad()
def log_probabilities(
    bilm: BiLM,
    head: Head,
    token_ids: Tensor,
    classes: np.ndarray,
    words: np.ndarray,
    lengths: Lengths,
    *,
    max_words: int,
) -> LogProbabilities:
    """Score every word of a batch, and every sentence's end, under the full softmax.

    Args:
        token_ids: (K, ...) of the distinct words (`BiLM.token_ids`).
        classes: (K + 2,) rows of the head, from `softmax_classes`.
        words: (N,) row of `token_ids` for every word, sentence after sentence.
        lengths: words of each of the B sentences; 0 is allowed.
        max_words: about how many words are processed at a time; a longer sentence is streamed, exactly.
    """
    targets, starts, ends = _targets(classes, words, lengths)
    sentence = np.repeat(np.arange(len(ends)), ends - starts)
    # The target that each direction predicts when it has processed a word.
    following = np.arange(len(words)) + sentence + np.array([[1], [0]])
    # The target that each direction predicts from the opening boundary: the first one, or the last one.
    opening = np.stack([starts, ends]) + np.arange(len(ends))
    scores = np.empty(targets.shape, dtype=np.float32)
    opening_scores = head.log_softmax(opening_states(bilm)).cpu().numpy()
    for direction in (0, 1):
        columns = opening[direction]
        scores[direction, columns] = opening_scores[direction, targets[direction, columns]]
    for chunk in bilm.forward_chunks(token_ids, words, lengths, max_words):
        for direction, hidden in enumerate(chunk.layers[-1]):
            columns = following[direction, chunk.words[direction]]
            chunk_targets = torch.from_numpy(targets[direction, columns]).to(hidden.device)
            scores[direction, columns] = -head.full_loss(hidden, chunk_targets).cpu().numpy()
    # Forward, the closing boundary is a sentence's last target; backward, its first. There the other direction predicts
    # from its opening boundary.
    return LogProbabilities(
        words=np.stack([np.delete(scores[0], opening[1]), np.delete(scores[1], opening[0])]),
        closing=np.stack([scores[0, opening[1]], scores[1, opening[0]]]),
    )


def _targets(
    classes: np.ndarray, words: np.ndarray, lengths: Lengths
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (2, N + B) classes to predict, and (B,) offsets of each sentence's first word and of its end.

    A sentence of n words has n + 1 targets in each direction: forward `w1 .. wn </S>`; backward, in the order of the
    text, `<S> w1 .. wn`.
    """
    ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
    starts = np.append(0, ends)[:-1]
    word_classes = classes[words]
    forward = np.insert(word_classes, ends, classes[-1])
    backward = np.insert(word_classes, starts, classes[-2])
    return np.stack([forward, backward]), starts, ends


@torch.no_grad()
def opening_states(bilm: BiLM) -> Tensor:
    """Return (2, P) the top layer's output of each direction at the opening boundary, the same for every sentence."""
    no_words = np.zeros(0, dtype=np.int64)
    return bilm.forward_packed(bilm.token_ids([]), no_words, [0]).outputs[-1][:, 0]

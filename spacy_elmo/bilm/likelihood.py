"""What a biLM and its head say of text: the log-probability of every word, from either side."""

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


@dataclass(frozen=True)
class LogProbabilities:
    """Natural logarithms for B sentences of N words, by direction: forward, backward."""

    words: np.ndarray
    """(2, N) float32, of each word given the words before it in its sentence, and given those after it."""
    closing: np.ndarray
    """(2, B) float32, of the closing boundary of each sentence: `</S>` forward, `<S>` backward."""


def language_model(weights: Weights) -> tuple[BiLM, Head]:
    """The network and the head of a weights file.

    Raises:
        ValueError: it has no head, or its vocabulary lacks a boundary or `<UNK>`.
    """
    head = weights.head()
    if head is None:
        raise ValueError(
            "These weights have no head, the softmax that knows which words follow: those of other programs mostly come"
            " without. A bundled biLM has one, and so has the model-best.safetensors of a pretraining run"
        )
    if missing := [word for word in (BOS, EOS, UNK) if word not in weights.vocabulary]:
        raise ValueError(f"The vocabulary of the head lacks {', '.join(missing)}")
    return weights.bilm(), head


def classes_of(types: Sequence[str], rows: Mapping[str, int]) -> np.ndarray:
    """(K + 2,) row of the softmax for each of K distinct words, that of `<UNK>` for others, then for `<S>` and `</S>`.

    Args:
        rows: of the vocabulary, by word.
    """
    unk = rows[UNK]
    return np.array([rows.get(word, unk) for word in [*types, BOS, EOS]], dtype=np.int64)


@torch.no_grad()
def log_probabilities(
    bilm: BiLM,
    head: Head,
    types: Tensor,
    classes: np.ndarray,
    words: np.ndarray,
    lengths: Lengths,
    *,
    max_words: int,
) -> LogProbabilities:
    """Score every word of a batch, and every sentence's end, under the full softmax.

    Args:
        types: token ids of the K distinct words (`BiLM.token_ids`).
        classes: (K + 2,) rows of the head, from `classes_of`.
        words: (N,) row of `types` for every word, sentence after sentence.
        lengths: words of each of the B sentences; 0 is allowed.
        max_words: about how many words are read at a time; a longer sentence is streamed, exactly.
    """
    goals = classes[words]
    ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
    starts = np.append(0, ends)[:-1]
    # A sentence of n words has n + 1 targets in each direction. Forward these are w1 .. wn </S>, and backward, in the
    # order of the text, <S> w1 .. wn. What is said at the opening is of the first of them, or of the last.
    following = np.stack(
        [np.insert(goals, ends, classes[-1]), np.insert(goals, starts, classes[-2])]
    )
    borders = np.stack([starts, ends]) + np.arange(len(ends))
    owner = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    after = np.arange(len(words)) + owner + np.array([[1], [0]])
    said = np.empty(following.shape, dtype=np.float32)
    opening = head.log_softmax(opening_contexts(bilm)).cpu().numpy()
    for direction in (0, 1):
        place = borders[direction]
        said[direction, place] = opening[direction, following[direction, place]]
    for piece in bilm.pieces(types, words, lengths, max_words):
        for direction, hidden in enumerate(piece.layers[-1]):
            place = after[direction, piece.words[direction]]
            goal = torch.from_numpy(following[direction, place]).to(hidden.device)
            said[direction, place] = -head.full_loss(hidden, goal).cpu().numpy()
    return LogProbabilities(
        words=np.stack([np.delete(said[0], borders[1]), np.delete(said[1], borders[0])]),
        closing=np.stack([said[0, borders[1]], said[1, borders[0]]]),
    )


@torch.no_grad()
def opening_contexts(bilm: BiLM) -> Tensor:
    """(2, P) what each direction says before any word. It is the same for every sentence."""
    nothing = np.zeros(0, dtype=np.int64)
    return bilm.read(bilm.token_ids([]), nothing, [0]).outputs[-1][:, 0]

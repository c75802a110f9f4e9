"""Batches of sentences from a prepared corpus, and the conversion of a batch to inputs of the biLM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...bilm.likelihood import softmax_classes
from ...bilm.model import BiLM
from ...bilm.words.char_ids import UNK
from .prepared import Sentences


class Epoch:
    """The batches of one pass over the corpus. The sentences of a batch have similar lengths.

    The seed and the index of the epoch determine the batches. The sentences are shuffled and divided into
    pools of about a hundred batches. Each pool is sorted by length and divided into batches. Finally the
    batches are shuffled. Each batch can be computed from its index, so a run can be resumed at any batch.
    """

    _BATCHES_PER_POOL = 100

    def __init__(self, sentences: Sentences, *, batch_tokens: int, seed: int, epoch: int) -> None:
        random = np.random.default_rng([seed, epoch])
        rows = random.permutation(len(sentences.lengths))
        lengths = sentences.lengths[rows]
        pool = (np.cumsum(lengths) - lengths) // (self._BATCHES_PER_POOL * batch_tokens)
        by_length = np.lexsort((lengths, pool))
        self._rows = rows[by_length]
        lengths, pool = lengths[by_length], pool[by_length]
        words = np.cumsum(lengths) - lengths
        first_of_pool = np.searchsorted(pool, pool)
        number = (words - words[first_of_pool]) // batch_tokens
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (np.diff(pool) != 0) | (np.diff(number) != 0)
        self._borders = np.append(np.flatnonzero(new), len(rows))
        self._order = random.permutation(len(self._borders) - 1)

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, number: int) -> np.ndarray:
        """Return the corpus indices of the sentences in the batch with the index `number`."""
        batch = self._order[number]
        return self._rows[self._borders[batch] : self._borders[batch + 1]]


@dataclass
class TrainBatch:
    """A batch of sentences, as the distinct words and an index of a distinct word for each word."""

    types: np.ndarray
    """Index of each distinct word in the list of the corpus, `Corpus.types`, (distinct words,)."""
    token_ids: Tensor
    """Input of the token encoder for each distinct word, such as its byte ids, (distinct words, ...)."""
    classes: np.ndarray
    """Softmax class of each distinct word, then of `<S>` and `</S>`, (distinct words + 2,)."""
    words: np.ndarray
    """Index of each word of the batch among the distinct words, (words,)."""
    lengths: np.ndarray
    """Number of words of each sentence, (sentences,)."""


class Batcher:
    """Converter of sentences (word ids) to batches with the inputs of a biLM and the classes of its softmax.

    Args:
        types: the distinct words of the corpus; the id of a word is its index in this list.
        vocabulary: the word of each softmax class, including `<S>`, `</S>` and `<UNK>`. A word that is not in
            this list has the class `<UNK>`, but its input is still the word itself.
    """

    def __init__(self, bilm: BiLM, types: Sequence[str], vocabulary: Sequence[str]) -> None:
        self._token_ids = bilm.token_ids(types)
        rows = {word: row for row, word in enumerate(vocabulary)}
        self.unk = rows[UNK]
        """Softmax class of `<UNK>`."""
        self._classes = softmax_classes(types, rows, bilm.config.spelling)

    def __call__(self, ids: np.ndarray, lengths: np.ndarray) -> TrainBatch:
        """Convert sentences to a batch.

        Args:
            ids: (words,) ids of the words of all sentences, one sentence after the other.
            lengths: (sentences,) number of words of each sentence.
        """
        # The same as `np.unique` with `return_inverse`, which would sort the words.
        is_present = np.zeros(len(self._token_ids), dtype=bool)
        is_present[ids] = True
        types = np.flatnonzero(is_present)
        row_of = np.empty(len(is_present), dtype=np.int64)
        row_of[types] = np.arange(len(types))
        classes = np.append(self._classes[types], self._classes[-2:])
        token_ids = self._token_ids[torch.from_numpy(types)]
        return TrainBatch(types, token_ids, classes, row_of[ids], lengths)

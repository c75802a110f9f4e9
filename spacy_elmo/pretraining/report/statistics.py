"""Statistics of a corpus, which depend on the settings of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..config import PretrainConfig
from ..corpus.prepared import Corpus, Sentences
from ..training.initial_weights import GivenWeights, run_vocabulary


@dataclass(frozen=True)
class Statistics:
    """Statistics of a corpus. "Words" means all occurrences of words in the training part."""

    vocab_size: int
    """Number of softmax classes."""
    covered: float
    """Share of words with a softmax class. The other words are `<UNK>` as targets, but not as input."""
    held_out_covered: float
    """Share of the words in the held-out part that have a softmax class."""
    long_words: float
    """Share of words with more bytes than `model.max_characters` allows. The rest of such a word is
    ignored."""
    long_sentences: float
    """Share of the training sentences that are split because they have more than `training.max_length`
    words."""


def statistics(config: PretrainConfig, corpus: Corpus, given: GivenWeights) -> Statistics:
    """Return the statistics of a corpus for a run with the settings `config`.

    Args:
        given: the weights files that the config names.
    """
    vocabulary = run_vocabulary(config, corpus, given)
    classes = set(vocabulary)
    known = np.fromiter((word in classes for word in corpus.types), bool, len(corpus.types))
    known[:3] = False  # <S>, </S> and <UNK>, even if the text itself contains "<UNK>"
    max_bytes = config.bilm.max_characters - 2
    long = np.fromiter((len(word.encode()) > max_bytes for word in corpus.types), bool, len(known))
    words = max(len(corpus.train.ids), 1)
    held_out = _counts(corpus.dev, len(corpus.types))
    return Statistics(
        vocab_size=len(vocabulary),
        covered=int(corpus.counts[known].sum()) / words,
        held_out_covered=int(held_out[known].sum()) / max(len(corpus.dev.ids), 1),
        long_words=int(corpus.counts[long].sum()) / words,
        long_sentences=float((corpus.train.lengths > config.training.max_length).mean()),
    )


def _counts(sentences: Sentences, types: int) -> np.ndarray:
    counts = np.zeros(types, dtype=np.int64)
    for ids in sentences.chunks():
        counts += np.bincount(ids, minlength=types)
    return counts

"""What a config makes of a corpus, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..config import PretrainConfig
from ..corpus.prepared import Corpus, Sentences
from ..training.initial_weights import given_weights


@dataclass(frozen=True)
class Statistics:
    """Shares are of words, unless they say otherwise; of the training part, unless they say otherwise."""

    vocab_size: int
    """Classes of the softmax."""
    covered: float
    """Words that are a class of their own. Others are `<UNK>` as a target, and themselves as input."""
    held_out_covered: float
    """The same of the held-out part."""
    long_words: float
    """Words of more bytes than `model.max_characters` leaves room for: their ends are not read."""
    long_sentences: float
    """Sentences of more than `training.max_length` words, which are read in pieces: a share of the sentences."""


def statistics(config: PretrainConfig, corpus: Corpus) -> Statistics:
    """Count a corpus as `config` would read it.

    Raises:
        OSError, ValueError: the vocabulary is that of `paths.init`, which cannot be read.
    """
    size = config.training.vocab_size
    given = given_weights(config) if size is None else None
    vocabulary = corpus.vocabulary(size) if size is not None else given.vocabulary if given else []
    classes = set(vocabulary)
    known = np.fromiter((word in classes for word in corpus.types), bool, len(corpus.types))
    known[:3] = False  # the text's own <UNK> is one
    room = config.bilm.max_characters - 2
    long = np.fromiter((len(word.encode()) > room for word in corpus.types), bool, len(known))
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
    for ids in sentences.pieces():
        counts += np.bincount(ids, minlength=types)
    return counts

"""The sentences that the benchmarks process."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import spacy

from spacy_elmo.text.sentences import starts_of_kinds, word_kinds

SAMPLE = Path(__file__).parents[1] / "corpus" / "sample" / "pretrain-en" / "train-00.txt"


def read_sentences(path: Path, n_words: int) -> list[list[str]]:
    """Return the first sentences of a text, with about `n_words` words together.

    Args:
        path: raw text, one paragraph per line.
    """
    tokenizer = spacy.blank("en").tokenizer
    sentences: list[list[str]] = []
    total = 0
    with path.open(encoding="utf8") as file:
        for line in file:
            words = [token.text for token in tokenizer(line.strip()) if not token.is_space]
            starts = [*np.flatnonzero(starts_of_kinds(word_kinds(words))).tolist(), len(words)]
            sentences += [words[a:b] for a, b in pairwise(starts)]
            total += len(words)
            if total >= n_words:
                break
    return sentences

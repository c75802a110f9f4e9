"""The distinct words of several Docs, so that each word is encoded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc


def distinct_words(docs: Sequence[Doc]) -> tuple[list[str], np.ndarray]:
    """Return the K distinct words of some Docs, and for each of their T tokens, Doc after Doc, the row of its word."""
    ends = np.cumsum([len(doc) for doc in docs])
    empty = np.zeros(0, dtype=np.uint64)
    orths = np.concatenate([empty, *(doc.to_array(ORTH) for doc in docs)])
    # Hashes are equal in every vocabulary; a string is looked up in the vocabulary of a Doc that contains it.
    hashes, first, rows = np.unique(orths, return_index=True, return_inverse=True)
    owners = np.searchsorted(ends, first, side="right")
    strings = [doc.vocab.strings for doc in docs]
    return [strings[o][h] for o, h in zip(owners.tolist(), hashes.tolist(), strict=True)], rows

"""What several Docs say, each word once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc


def distinct_words(docs: Sequence[Doc]) -> tuple[list[str], np.ndarray]:
    """K words, and the (T,) row of every token of the Docs laid end to end."""
    ends = np.cumsum([len(doc) for doc in docs])
    empty = np.zeros(0, dtype=np.uint64)
    orths = np.concatenate([empty, *(doc.to_array(ORTH) for doc in docs)])
    # Hashes mean the same in every vocabulary; strings are looked up where they are sure to be.
    hashes, first, rows = np.unique(orths, return_index=True, return_inverse=True)
    owners = np.searchsorted(ends, first, side="right")
    strings = [doc.vocab.strings for doc in docs]
    return [strings[o][h] for o, h in zip(owners.tolist(), hashes.tolist(), strict=True)], rows

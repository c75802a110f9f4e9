"""Search for the occurrences of a word that are most similar to a query (Peters et al. 2018, table 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .occurrences import Occurrence, Occurrences

# Digits of a cosine that are compared. Smaller differences are rounding errors, for example in layer 0.
_DIGITS = 5
_WORDS_THAT_DIFFER = 2


class Neighbor(NamedTuple):
    """One of the occurrences of a word in a corpus, and its similarity to a query."""

    occurrence: Occurrence
    cosine: float
    """Cosine of the two vectors, after subtracting the mean of the corpus from both."""


def nearest(queries: Occurrences, corpus: Occurrences, n: int) -> list[list[list[Neighbor]]]:
    """Return the n nearest occurrences in a corpus for each query and each view (a layer or the average).

    The nearest occurrence comes first, and equally near occurrences are in the order of the text. If several
    occurrences have the same two words on each side, only the nearest of these occurrences is returned,
    because many texts repeat phrases.

    Args:
        queries: occurrences to compare with the corpus, from `find_in_sentences`.
    """
    cosines = np.einsum("vqw,vow->qvo", queries.unit_vectors, corpus.unit_vectors)
    return [[_distinct(corpus.items, view, n) for view in query] for query in cosines]


def _distinct(occurrences: list[Occurrence], cosines: np.ndarray, n: int) -> list[Neighbor]:
    phrases: dict[str, int] = {}
    for number in np.argsort(-cosines.round(_DIGITS), kind="stable").tolist():
        if len(phrases) == n:
            break
        phrases.setdefault(occurrences[number].excerpt(_WORDS_THAT_DIFFER), number)
    return [Neighbor(occurrences[number], float(cosines[number])) for number in phrases.values()]

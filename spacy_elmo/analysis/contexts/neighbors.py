"""Nearest neighbours of a word in context (Peters et al. 2018, table 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .occurrences import Occurrence, Occurrences

# Cosines that differ by less differ by rounding, as those of a word's context-free vector.
_DIGITS = 5
_WORDS_THAT_DIFFER = 2


class Neighbor(NamedTuple):
    """An occurrence, and how near it is."""

    occurrence: Occurrence
    cosine: float
    """Of the angle between the vectors, as seen from the centre of the corpus."""


def nearest(queries: Occurrences, corpus: Occurrences, n: int) -> list[list[list[Neighbor]]]:
    """The occurrences of a corpus that are nearest to others, nearest first: for each query, in each view.

    Equally near ones come in the order of the text. Of those with the same two words on each side there is one, because
    a text may repeat its phrases.

    Args:
        queries: as of `find_in_sentences`.
    """
    cosines = np.einsum("vqw,vow->qvo", queries.directions, corpus.directions)
    return [[_different(corpus.found, view, n) for view in query] for query in cosines]


def _different(found: list[Occurrence], cosines: np.ndarray, n: int) -> list[Neighbor]:
    phrases: dict[str, int] = {}
    for place in np.argsort(-cosines.round(_DIGITS), kind="stable").tolist():
        if len(phrases) == n:
            break
        phrases.setdefault(found[place].excerpt(_WORDS_THAT_DIFFER), place)
    return [Neighbor(found[place], float(cosines[place])) for place in phrases.values()]

"""The vectors of a word's occurrences as points of a plane, one for each view."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .occurrences import Occurrences

# As a share of the largest singular value that n vectors of length 1 can have. Less is rounding.
_NOTHING = 1e-5


@dataclass(frozen=True)
class Plane:
    """A view of the occurrences."""

    view: str
    points: np.ndarray
    """(n, 2) of the occurrences."""
    queries: np.ndarray
    """(m, 2) of further occurrences, which had no say in how the plane lies."""
    shares: tuple[float, float]
    """Of the variance, along each axis."""


def planes(corpus: Occurrences, queries: Occurrences) -> list[Plane]:
    """For each view the plane on which the occurrences of a corpus differ most: principal components of their
    directions, whose cosines `nearest` compares.

    Deterministic: a component points to where its largest loading is positive. In layer 0 a word that is always spelt
    the same has one direction, and is one point.

    Args:
        queries: as of `find_in_sentences`.
    """
    return [
        _plane(view, own, further)
        for view, own, further in zip(
            corpus.views, corpus.directions, queries.directions, strict=True
        )
    ]


def _plane(view: str, vectors: np.ndarray, queries: np.ndarray) -> Plane:
    mean = vectors.mean(axis=0)
    centred = (vectors - mean).astype("float64")
    _, values, components = np.linalg.svd(centred, full_matrices=False)
    variances = np.where(values > _NOTHING * len(vectors) ** 0.5, values, 0) ** 2
    # A single occurrence has one component, and it says nothing.
    axes = np.zeros((2, vectors.shape[1]))
    kept = np.flatnonzero(variances[:2])
    axes[kept] = components[kept]
    axes *= np.sign(np.take_along_axis(axes, np.abs(axes).argmax(1)[:, None], 1))
    total = variances.sum() or 1.0
    first, second = (*variances[:2] / total, 0.0, 0.0)[:2]
    return Plane(view, centred @ axes.T, (queries - mean) @ axes.T, (float(first), float(second)))

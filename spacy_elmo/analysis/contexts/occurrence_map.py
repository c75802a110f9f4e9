"""Projection of the vectors of a word's occurrences to a plane, for each view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .occurrences import Occurrences

# Singular values below this share of the largest possible one (of n vectors of length 1) are rounding errors.
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Plane:
    """The occurrences in one view, a layer or the average, projected to two dimensions."""

    view: str
    points: np.ndarray
    """(n, 2) coordinates of the occurrences."""
    queries: np.ndarray
    """(m, 2) coordinates of the queries, which do not influence the plane."""
    shares: tuple[float, float]
    """Share of the variance along each axis."""


def project(corpus: Occurrences, queries: Occurrences) -> list[Plane]:
    """Project occurrences to the first two principal components of their directions, for each view.

    The directions are those whose cosines `nearest` compares. The result is deterministic: the largest loading of a
    component is positive. In layer 0 a word that is always spelt the same has one direction, and is one point.

    Args:
        queries: the result of `find_in_sentences`.
    """
    return [
        _plane(view, vectors, query_vectors)
        for view, vectors, query_vectors in zip(
            corpus.views, corpus.unit_vectors, queries.unit_vectors, strict=True
        )
    ]


def drawable(planes: Sequence[Plane]) -> list[Plane]:
    """Return the planes whose points are not all on one line; the last plane if there is none.

    So layer 0 is left out for a word that has one or two spellings.
    """
    return [plane for plane in planes if plane.shares[1] > 0] or list(planes[-1:])


def _plane(view: str, vectors: np.ndarray, queries: np.ndarray) -> Plane:
    mean = vectors.mean(axis=0)
    centered = (vectors - mean).astype("float64")
    _, values, components = np.linalg.svd(centered, full_matrices=False)
    variances = np.where(values > _TOLERANCE * len(vectors) ** 0.5, values, 0) ** 2
    # A single occurrence has one component only, whose variance is 0.
    axes = np.zeros((2, vectors.shape[1]))
    kept = np.flatnonzero(variances[:2])
    axes[kept] = components[kept]
    axes *= np.sign(np.take_along_axis(axes, np.abs(axes).argmax(1)[:, None], 1))
    total = variances.sum() or 1.0
    first, second = (*variances[:2] / total, 0.0, 0.0)[:2]
    return Plane(view, centered @ axes.T, (queries - mean) @ axes.T, (float(first), float(second)))

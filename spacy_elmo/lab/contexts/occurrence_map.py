"""Projection of the contextual vectors of a word to two dimensions, to draw a 2-D map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .occurrences import Occurrences

# Singular values below this share of their maximum (for n vectors of length 1) are rounding errors.
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Plane:
    """Vectors of n occurrences and m queries in one view (a layer or the average), projected to two
    dimensions."""

    view: str
    points: np.ndarray
    """Coordinates of the occurrences, (n, 2)."""
    queries: np.ndarray
    """Coordinates of the queries, (m, 2). The queries do not influence the projection."""
    shares: tuple[float, float]
    """Share of the variance that each axis explains, 0 to 1."""


def project(corpus: Occurrences, queries: Occurrences) -> list[Plane]:
    """Project the vectors of occurrences to their first two principal components, in each view.

    A view is a layer, or the average of the layers. Vectors are centred and scaled to length 1, as in
    `nearest`. The sign of each component is chosen so that the loading with the largest magnitude is
    positive. If all occurrences have the same spelling, they have the same vector in layer 0, so layer 0
    shows only one point.

    Args:
        corpus: occurrences that determine the projection.
        queries: other occurrences to draw on the same map, from `find_in_sentences`.
    """
    return [
        _plane(view, vectors, query_vectors)
        for view, vectors, query_vectors in zip(
            corpus.views, corpus.unit_vectors, queries.unit_vectors, strict=True
        )
    ]


def drawable(planes: Sequence[Plane]) -> list[Plane]:
    """Return the 2-D projections, without those in which all points are on one line.

    In layer 0, for example, a word with one or two spellings has only one or two points. If no projection
    would be left, return the last one.
    """
    return [plane for plane in planes if plane.shares[1] > 0] or list(planes[-1:])


def _plane(view: str, vectors: np.ndarray, queries: np.ndarray) -> Plane:
    mean = vectors.mean(axis=0)
    centered = (vectors - mean).astype("float64")
    _, values, components = np.linalg.svd(centered, full_matrices=False)
    variances = np.where(values > _TOLERANCE * len(vectors) ** 0.5, values, 0) ** 2
    # A single occurrence has only one component, with a variance of 0.
    axes = np.zeros((2, vectors.shape[1]))
    kept = np.flatnonzero(variances[:2])
    axes[kept] = components[kept]
    axes *= np.sign(np.take_along_axis(axes, np.abs(axes).argmax(1)[:, None], 1))
    total = variances.sum() or 1.0
    first, second = (*variances[:2] / total, 0.0, 0.0)[:2]
    return Plane(view, centered @ axes.T, (queries - mean) @ axes.T, (float(first), float(second)))

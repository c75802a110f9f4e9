"""How well predicted clusters fit labelled ones: MUC, B-cubed and CEAF-e, whose mean F1 CoNLL-2012 ranks by.

Each is a recall of the labelled clusters and, the other way round, a precision of the predicted ones. All of them are
given here as the two numbers of a fraction, for the sums over documents.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .annotation import Cluster
from .matching import best_matching

Clusters = Sequence[Cluster]


class Share(NamedTuple):
    """A count and its maximum."""

    found: float
    total: float


def muc(key: Clusters, response: Clusters) -> Share:
    """Count the links of Vilain et al. (1995): a cluster of n mentions has n - 1, less one for each further part into
    which the other clusters cut it."""
    found = total = 0
    owner = _owners(response)
    for cluster in key:
        owners = [owner.get(mention) for mention in cluster]
        parts = len(set(owners) - {None}) + owners.count(None)
        found += len(cluster) - parts
        total += len(cluster) - 1
    return Share(found, total)


def b_cubed(key: Clusters, response: Clusters) -> Share:
    """Count the mentions of Bagga and Baldwin (1998): of each, how much of its cluster stands with it in the other
    ones."""
    found = 0.0
    total = 0
    owner = _owners(response)
    for cluster in key:
        owners = [owner.get(mention) for mention in cluster]
        together = (owners.count(number) for number in set(owners) - {None})
        found += sum(count * count for count in together) / len(cluster)
        total += len(cluster)
    return Share(found, total)


def ceaf_e(key: Clusters, response: Clusters) -> Share:
    """Count the entities of Luo (2005): the likeness of clusters, 2 |K and R| / (|K| + |R|), in the best matching."""
    likeness = np.zeros((len(key), len(response)))
    owner = _owners(response)
    for row, cluster in enumerate(key):
        for mention in cluster:
            if mention in owner:
                likeness[row, owner[mention]] += 1
    key_sizes, response_sizes = (
        np.array([len(cluster) for cluster in side], dtype=float) for side in (key, response)
    )
    likeness *= 2 / (key_sizes[:, None] + response_sizes)
    return Share(best_matching(likeness), len(key))


def _owners(clusters: Clusters) -> dict[tuple[int, int], int]:
    """Return the number of the cluster of each mention."""
    return {mention: number for number, cluster in enumerate(clusters) for mention in cluster}

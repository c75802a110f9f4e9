"""Agreement of predicted clusters with labelled ones: MUC, B-cubed and CEAF-e, whose mean F1 CoNLL-2012 uses.

Each is a recall of the labelled clusters and, the other way round, a precision of the predicted ones. Here each is a
numerator and a denominator, which are summed over documents.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .annotation import Cluster
from .matching import best_matching

Clusters = Sequence[Cluster]


class Share(NamedTuple):
    """A count and its maximum."""

    matched: float
    total: float


def muc(key: Clusters, response: Clusters) -> Share:
    """Count the links of Vilain et al. (1995): a cluster of n mentions has n - 1, less one for each further part into
    which the other clusters cut it."""
    matched = total = 0
    owner = _owners(response)
    for cluster in key:
        owners = [owner.get(mention) for mention in cluster]
        parts = len(set(owners) - {None}) + owners.count(None)
        matched += len(cluster) - parts
        total += len(cluster) - 1
    return Share(matched, total)


def b_cubed(key: Clusters, response: Clusters) -> Share:
    """Count the mentions of Bagga and Baldwin (1998): of each, the share of its cluster that is with it in a cluster
    of the others."""
    matched = 0.0
    total = 0
    owner = _owners(response)
    for cluster in key:
        owners = [owner.get(mention) for mention in cluster]
        together = (owners.count(number) for number in set(owners) - {None})
        matched += sum(count * count for count in together) / len(cluster)
        total += len(cluster)
    return Share(matched, total)


def ceaf_e(key: Clusters, response: Clusters) -> Share:
    """Count the entities of Luo (2005): the similarity of clusters, 2 |K and R| / (|K| + |R|), in the best matching."""
    similarity = np.zeros((len(key), len(response)))
    owner = _owners(response)
    for row, cluster in enumerate(key):
        for mention in cluster:
            if mention in owner:
                similarity[row, owner[mention]] += 1
    key_sizes, response_sizes = (
        np.array([len(cluster) for cluster in side], dtype=float) for side in (key, response)
    )
    similarity *= 2 / (key_sizes[:, None] + response_sizes)
    return Share(best_matching(similarity), len(key))


def _owners(clusters: Clusters) -> dict[tuple[int, int], int]:
    """Return the number of the cluster of each mention."""
    return {mention: number for number, cluster in enumerate(clusters) for mention in cluster}

"""Agreement of predicted and labelled clusters: MUC, B-cubed and CEAF-e. CoNLL-2012 uses the mean of their F1.

Each function returns a recall of the labelled clusters, or with exchanged arguments a precision of the predicted ones.
The result is a numerator and a denominator, which are added over documents.
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
    """Count links (Vilain et al. 1995). A cluster of n mentions has n - 1 links. One link is lost for each additional
    part into which the other clusters divide it."""
    matched = total = 0
    owner = _owners(response)
    for cluster in key:
        owners = [owner.get(mention) for mention in cluster]
        parts = len(set(owners) - {None}) + owners.count(None)
        matched += len(cluster) - parts
        total += len(cluster) - 1
    return Share(matched, total)


def b_cubed(key: Clusters, response: Clusters) -> Share:
    """Count mentions (Bagga and Baldwin 1998). A mention counts as the share of its cluster that one of the other
    clusters has together with it."""
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
    """Add the similarities of clusters, 2 |K and R| / (|K| + |R|), in their best matching (Luo 2005)."""
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

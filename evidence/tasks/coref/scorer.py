"""`evidence.coref_scorer.v1`: the mean F1 of MUC, B-cubed and CEAF-e. Mentions match if they have the same tokens."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import spacy
from spacy.training import Example

from .annotation import clusters
from .metrics import b_cubed, ceaf_e, muc

_METRICS = {"muc": muc, "b3": b_cubed, "ceafe": ceaf_e}


def score_coref(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score the clusters of all Docs together, as in CoNLL-2012. Single mentions are in no cluster, so they do not
    count.

    Returns:
        Numbers between 0 and 1: `coref_muc_p`, `_r` and `_f`, the same for `coref_b3` and `coref_ceafe`, and `coref_f`,
        the mean of the three F1.
    """
    pairs = [(clusters(each.reference), clusters(each.predicted)) for each in examples]
    scores: dict[str, Any] = {}
    for name, metric in _METRICS.items():
        recall = _share(metric(key, response) for key, response in pairs)
        precision = _share(metric(response, key) for key, response in pairs)
        both = recall + precision
        scores[f"coref_{name}_p"] = precision
        scores[f"coref_{name}_r"] = recall
        scores[f"coref_{name}_f"] = 2 * recall * precision / both if both else 0.0
    scores["coref_f"] = float(np.mean([scores[f"coref_{name}_f"] for name in _METRICS]))
    return scores


def _share(shares: Iterable[tuple[float, float]]) -> float:
    matched, total = (sum(numbers) for numbers in zip((0, 0), *shares, strict=True))
    return matched / total if total else 0.0


@spacy.registry.scorers("evidence.coref_scorer.v1")
def make_coref_scorer() -> Callable[..., dict[str, Any]]:
    """Return the scorer of a coref component."""
    return score_coref

"""`evidence.nli_scorer.v1`: accuracy, and precision, recall and F1 of each label."""

from collections.abc import Callable, Iterable
from typing import Any

import spacy
from spacy.scorer import PRFScore
from spacy.training import Example


def score_nli(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score the most probable label of each pair.

    Returns:
        `nli_acc`, the share of pairs with the correct label, and `nli_per_type`, the precision, recall and F1 of each
        label.
    """
    per_type: dict[str, PRFScore] = {}
    right = total = 0
    for example in examples:
        predicted, gold = (
            max(doc.cats, key=doc.cats.__getitem__) for doc in (example.x, example.y)
        )
        right += predicted == gold
        total += 1
        for label in example.y.cats:
            per_type.setdefault(label, PRFScore()).score_set(
                {predicted} & {label}, {gold} & {label}
            )
    return {
        "nli_acc": right / total if total else None,
        "nli_per_type": {label: score.to_dict() for label, score in sorted(per_type.items())},
    }


@spacy.registry.scorers("evidence.nli_scorer.v1")
def make_nli_scorer() -> Callable[..., dict[str, Any]]:
    """Return the scorer of an nli component."""
    return score_nli

"""`evidence.srl_scorer.v1`: precision, recall and F1 of arguments, as in CoNLL-2005."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import spacy
from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example

from .annotation import Argument, arguments

Pieces = tuple[tuple[int, int], ...]


def joined(roles: Sequence[Argument]) -> set[tuple[str, Pieces]]:
    """Return arguments joined with their continuations. C-X is a further piece of the nearest X before it; if there is
    none, it is an argument X. A continuation of the predicate itself, C-V, is no argument."""
    whole: list[tuple[str, Pieces]] = []
    for start, end, label in sorted(roles):
        role = label.removeprefix("C-")
        heads = [index for index, (known, _) in enumerate(whole) if known == role]
        if role == label or not heads:
            whole.append((role, ((start, end),)))
        else:
            whole[heads[-1]] = (role, (*whole[heads[-1]][1], (start, end)))
    return {(role, pieces) for role, pieces in whole if role != "V"}


def propositions(doc: Doc) -> set[tuple[int, str, Pieces]]:
    """Return the arguments of all predicates of a Doc, each as (predicate, role, pieces)."""
    return {
        (predicate, role, pieces)
        for predicate, roles in arguments(doc).items()
        for role, pieces in joined(roles)
    }


def score_srl(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score arguments. An argument is correct if its predicate, its role and all its tokens are.

    Returns:
        `srl_p`, `srl_r` and `srl_f` between 0 and 1 over all arguments, and `srl_per_type`, the same for each role.
    """
    total = PRFScore()
    per_type: dict[str, PRFScore] = {}
    for example in examples:
        predicted, gold = propositions(example.predicted), propositions(example.reference)
        total.score_set(predicted, gold)
        for role in {argument[1] for argument in predicted | gold}:
            per_type.setdefault(role, PRFScore()).score_set(
                {argument for argument in predicted if argument[1] == role},
                {argument for argument in gold if argument[1] == role},
            )
    return {
        "srl_p": total.precision,
        "srl_r": total.recall,
        "srl_f": total.fscore,
        "srl_per_type": {role: score.to_dict() for role, score in sorted(per_type.items())},
    }


@spacy.registry.scorers("evidence.srl_scorer.v1")
def make_srl_scorer() -> Callable[..., dict[str, Any]]:
    """Return the scorer of an srl component."""
    return score_srl

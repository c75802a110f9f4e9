"""The findings of the report: sentences that follow from the scores."""

from __future__ import annotations

import statistics
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from .plan import Run
from .results import Results, mean


def gains(results: Results) -> str:
    """Return sentences on the sets where ELMo helps more than seeds differ; empty if there is nothing to compare."""
    better, worse, mixed, higher, not_higher = [], [], [], [], []
    for task, data in results.sets:
        baseline, elmo = (
            [result.score for result in results.of(task=task, data=data, variant=name, share=100)]
            for name in ("baseline", "elmo")
        )
        if not (baseline and elmo):
            continue
        if min(len(baseline), len(elmo)) == 1:
            names = higher if statistics.mean(elmo) > statistics.mean(baseline) else not_higher
        elif min(elmo) > max(baseline):
            names = better
        else:
            names = worse if max(elmo) < min(baseline) else mixed
        names.append(results.label(task, data))
    return _sentences(
        {
            "Every seed with ELMo is above every seed without it (with three on either side, chance alone does that"
            " once in twenty sets) on": better,
            "Every seed with ELMo is below every seed without it on": worse,
            "Seeds with and without ELMo overlap, so that nothing is decided, on": mixed,
            "With a single seed, so that chance cannot be ruled out, ELMo is above the baseline on": higher,
            "With a single seed ELMo is not above the baseline on": not_higher,
        }
    )


def progress(runs: Sequence[Run], scored: Container[Path]) -> str:
    """Return a sentence on the number of planned runs that have scores.

    Args:
        scored: the files of scores in the report.
    """
    done = sum(all(path in scored for path in run.metrics.values()) for run in runs)
    if done == len(runs):
        return f"All {done} planned runs are in this report."
    found = f"Only {done} of {len(runs)} planned runs are in this report"
    return f"{found}: the others are still to be done, or lack their data."


def rivals(results: Results) -> str:
    """Return sentences on the number of sets where each rival beats the baseline and ELMo; empty if none has run."""
    statements = []
    for rival in ("vectors", "pretrain", "elmo_vectors"):
        runs = results.of(variant=rival, share=100)
        if not runs:
            continue
        sets = {(run.task, run.data) for run in runs}
        chance = " (one seed, so that chance cannot be ruled out)" if len(runs) == len(sets) else ""
        over_elmo = _above(results, rival, "elmo")
        names = f": {'; '.join(over_elmo)}" if over_elmo else ""
        statements.append(
            f"`{rival}`{chance} is above the mean of the baseline on {len(_above(results, rival, 'baseline'))} of"
            f" {len(sets)} sets, and above the mean of `elmo` on {len(over_elmo)}{names}."
        )
    return " ".join(statements)


def _above(results: Results, one: str, other: str) -> list[str]:
    """Return the sets on which the mean of one variant is above that of another."""
    above = []
    for task, data in results.sets:
        its, others = (
            results.of(task=task, data=data, variant=name, share=100) for name in (one, other)
        )
        if its and others and mean(its) > mean(others):
            above.append(results.label(task, data))
    return above


def text_read(results: Results, size: Mapping[str, Any]) -> str:
    """Return sentences on the raw text that the rivals were trained on; empty if none has run.

    Args:
        size: the section of the size in the plan.
    """
    read = []
    if results.of(variant="vectors") or results.of(variant="elmo_vectors"):
        read.append(f"The static vectors learned from {_amount(size['raw_words'])}.")
    if results.of(variant="pretrain"):
        read.append(f"`pretrain` learned from {_amount(size['tok2vec_words'])}, in one pass.")
    return (
        " ".join([*read, "What the biLM has read is on the card of its weights."]) if read else ""
    )


def _amount(words: int | None) -> str:
    return "all of the raw text" if words is None else f"the first {words:,} words of the raw text"


def _sentences(statements: Mapping[str, list[str]]) -> str:
    return " ".join(f"{text}: {'; '.join(names)}." for text, names in statements.items() if names)

"""What the scores say, in sentences."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .plan import Run
from .results import Result, Results, mean

_SPREAD = "than the larger of both standard deviations over the seeds"


def gains(results: Results) -> str:
    """Where ELMo helps and where it does not, as far as the seeds can tell. Empty: no set has both sides."""
    better, worse, level, higher, not_higher = [], [], [], [], []
    for task, data in results.sets:
        baseline, elmo = (
            results.of(task=task, data=data, variant=name, share=100)
            for name in ("baseline", "elmo")
        )
        if not (baseline and elmo):
            continue
        gain = mean(elmo) - mean(baseline)
        if min(len(baseline), len(elmo)) == 1:
            names = higher if gain > 0 else not_higher
        elif abs(gain) <= max(map(_deviation, (baseline, elmo))):
            names = level
        else:
            names = better if gain > 0 else worse
        names.append(results.label(task, data))
    return _sentences(
        {
            f"ELMo is above the baseline by more {_SPREAD} on": better,
            f"ELMo is below the baseline by more {_SPREAD} on": worse,
            f"ELMo and the baseline differ by no more {_SPREAD} on": level,
            "With a single seed, so that chance cannot be ruled out, ELMo is above the baseline on": higher,
            "With a single seed ELMo is not above the baseline on": not_higher,
        }
    )


def progress(runs: Sequence[Run]) -> str:
    """How many of the planned runs have scores."""
    done = sum(all(path.exists() for path in run.metrics.values()) for run in runs)
    if done == len(runs):
        return f"All {done} planned runs are in this report."
    return f"Only {done} of {len(runs)} planned runs are in this report: the others are still to be done."


def better_rivals(results: Results) -> str:
    """Where static vectors, or spaCy's pretraining, score higher than ELMo on the seeds that both have."""
    above: dict[str, list[str]] = {}
    for rival in ("vectors", "pretrain"):
        for task, data in results.sets:
            its, elmo = (
                {r.seed: r for r in results.of(task=task, data=data, variant=name, share=100)}
                for name in (rival, "elmo")
            )
            seeds = its.keys() & elmo.keys()
            if not seeds:
                continue
            names = above.setdefault(f"On the same seeds `{rival}` is above `elmo` on", [])
            if mean(its[seed] for seed in seeds) > mean(elmo[seed] for seed in seeds):
                names.append(results.label(task, data))
    return " ".join(
        f"{said}: {'; '.join(names)}." if names else f"{said} no set."
        for said, names in above.items()
    )


def text_read(results: Results, size: Mapping[str, Any]) -> str:
    """How much of the raw text the rivals learned from. Empty: none of them has run.

    Args:
        size: its section of the plan.
    """
    read = {
        "vectors": f"`vectors` learned from {_amount(size['raw_words'])}",
        "pretrain": f"`pretrain` from {_amount(size['tok2vec_words'])}, in one pass",
    }
    if not any(results.of(variant=name) for name in (*read, "elmo_vectors")):
        return ""
    return f"{', '.join(read.values())}; what the biLM has read is on the card of its weights."


def _amount(words: int | None) -> str:
    return "all of the raw text" if words is None else f"the first {words:,} words of the raw text"


def _deviation(found: Iterable[Result]) -> float:
    return statistics.stdev(result.score for result in found)


def _sentences(said: Mapping[str, list[str]]) -> str:
    return " ".join(f"{text}: {'; '.join(names)}." for text, names in said.items() if names)

"""The jobs of a size, stage by stage: most runs, raw text, the files of the rivals, the runs of the rivals."""

from __future__ import annotations

import sys
from pathlib import Path

from .plan import Plan, Run
from .rivals import needs_raw_text, resource_jobs, text_jobs
from .schedule import Job, left, planned_minutes


def stages(plan: Plan, size: str, data_folder: Path) -> list[list[Job]]:
    """Return lists of jobs; each list needs the files of those before it.

    The files of the rivals take as long as a dozen runs, so the runs that do not need them come first.
    """
    without, of_rivals = (
        [training_job(plan, run) for run in plan.runs(size) if needs_raw_text(run) == needs]
        for needs in (False, True)
    )
    return [without, text_jobs(plan, size, data_folder), resource_jobs(plan, size), of_rivals]


def outstanding(jobs: list[list[Job]]) -> list[list[Job]]:
    """Return the jobs of `stages` that are not done, without preparations whose runs are all done."""
    without, text, resources, of_rivals = map(left, jobs)
    return [without, text, resources, of_rivals] if of_rivals else [without, [], [], []]


def training_job(plan: Plan, run: Run) -> Job:
    """Return the job of a run."""
    return Job(
        name=run.name,
        command=[sys.executable, "-m", "experiments.training", str(plan.path), run.size, run.name],
        outputs=tuple(run.metrics.values()),
        minutes=run.minutes,
        log=run.folder.with_name(f"{run.folder.name}.log"),
    )


def budget(size: str, jobs: list[list[Job]], processes: int) -> str:
    """Return a line with the planned time of a size and of its outstanding part.

    Args:
        jobs: the lists that `stages` returns.
    """
    whole, rest = (
        sum(planned_minutes(stage, processes) for stage in of) for of in (jobs, outstanding(jobs))
    )
    runs = [*jobs[0], *jobs[-1]]
    count, to_do = len(runs), len(left(runs))
    return (
        f"{size}: {count} runs, about {_duration(whole)} in {processes} processes;"
        f" {to_do} runs left, about {_duration(rest)}"
    )


def _duration(minutes: float) -> str:
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"

"""Execution of a plan: make the corpora and the files of the rivals, and do all runs, with one process per core.

    python -m experiments.run plan.yml small --data ../../data
    python -m experiments.run plan.yml                            # print the time of each size, and what is left

Finished runs are skipped unless their config has changed, so the same command continues after a stop.
"""

import argparse
import dataclasses
import multiprocessing
import os
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

from spacy_elmo.run_lock import locked_folder

from . import rivals
from .corpora import absent, make
from .plan import Plan, Run
from .spelling import spelling_of
from .training import carry_out, done

Item = TypeVar("Item")


def run(plan: Plan, size: str, data_folder: Path, processes: int) -> None:
    """Do the runs of a size that are not finished.

    Raises:
        OSError, ValueError: the plan or the data cannot be used, or another process runs this size.
    """
    plan = without_absent(plan, size, data_folder)
    runs = [run for run in plan.runs(size) if not done(run)]
    # Runs without raw text come first, because the files of the rivals take as long as a dozen runs.
    first = [run for run in runs if not rivals.needs_raw_text(run)]
    last = [run for run in runs if rivals.needs_raw_text(run)]
    with locked_folder(Path("metrics", size)):
        print(budget(plan, size, processes), flush=True)
        corpora = [corpus for run in runs for corpus in run.corpora]
        make(plan, corpora, data_folder, processes, spelling_of(plan.size(size).get("weights")))
        in_processes(train, first, processes)
        resources = rivals.missing(last)
        if resources:
            rivals.make_texts(plan, size, data_folder)
        in_processes(rivals.make, resources, processes)
        in_processes(train, last, processes)


def in_processes(work: Callable[[Item], str], items: list[Item], processes: int) -> None:
    """Call a function for each item in a new process, and print its results.

    After an error, no further process is started.
    """
    # A new process for each item, so that no run has the memory or the random numbers of another.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, max_tasks_per_child=1) as pool:
        for number, line in enumerate(pool.map(work, items), 1):
            print(f"[{number}/{len(items)}] {line}", flush=True)


def train(run: Run) -> str:
    """Do a run, and return a line about it."""
    # These modules register the functions that configs name. `register` is in the working folder.
    import register  # noqa: F401

    from . import init_tok2vec, numpy_ops  # noqa: F401

    try:
        return f"{run.name}: {carry_out(run):.1f} minutes"
    except BlockingIOError as error:
        # The process of a killed command still finishes its run.
        return f"{run.name} is skipped. {error}"


def budget(plan: Plan, size: str, processes: int) -> str:
    """Return a line with the planned time of a size, and of its runs that are left."""
    runs = plan.runs(size)
    left = [run for run in runs if not done(run)]
    whole = planned_minutes(plan, runs, rivals.needed(runs))
    rest = planned_minutes(plan, left, rivals.missing(left))
    return (
        f"{size}: {len(runs)} runs, about {_duration(whole / processes)} in {processes} processes;"
        f" {len(left)} runs left, about {_duration(rest / processes)}"
    )


def planned_minutes(plan: Plan, runs: Iterable[Run], resources: Iterable[rivals.Resource]) -> float:
    """Return the planned minutes of one core for runs and for the files of rivals."""
    return sum(run.minutes for run in runs) + rivals.planned_minutes(plan, list(resources))


def _duration(minutes: float) -> str:
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"


def without_absent(plan: Plan, size: str, data_folder: Path) -> Plan:
    """Return the plan without the runs whose data are missing. Print the missing files of each set.

    Raises:
        FileNotFoundError: the data of all runs are missing.
    """
    runs = plan.runs(size)
    missing = [(run, files) for run in runs if (files := absent(plan, run, data_folder))]
    if runs and len(missing) == len(runs):
        raise FileNotFoundError(
            f"{data_folder} has no data of the size {size}; README.md lists the files of the data folder (--vars.data)"
        )
    by_set = {str(run.data): files for run, files in missing}
    for name, files in by_set.items():
        print(f"{name} is skipped: there is no {', '.join(map(str, files))}", flush=True)
    passed_over = {run.name for run, _ in missing}
    of_text = [run for run in runs if rivals.needs_raw_text(run) and run.name not in passed_over]
    if of_text and (pattern := rivals.absent_text(plan, size, data_folder)) is not None:
        variants = ", ".join(dict.fromkeys(run.variant for run in of_text))
        print(f"Runs with raw text ({variants}) are skipped: there is no {pattern}", flush=True)
        passed_over |= {run.name for run in of_text}
    return dataclasses.replace(plan, passed_over=frozenset(passed_over))


def _cores() -> int:
    # `taskset` or a batch system may allow fewer cores than cpu_count.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main() -> None:
    """Parse the arguments, and do the runs of a size or print the planned times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument(
        "size", nargs="?", metavar="SIZE", help="without it: print the planned time of all sizes"
    )
    parser.add_argument("--data", type=Path, default=Path("assets"), help="the data folder")
    parser.add_argument(
        "--processes", type=int, default=_cores(), help="number of processes in parallel"
    )
    args = parser.parse_args()
    # Inherited by the processes of the runs, so that their minutes are those of one core.
    os.environ.update({f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")})
    try:
        plan = Plan.read(args.plan)
        if args.size is not None:
            run(plan, args.size, args.data, args.processes)
            return
        for size in plan.content["sizes"]:
            print(budget(plan, size, args.processes))
        print("These times do not include conversion, probes, charts and the report.")
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise SystemExit(str(error)) from error
    except KeyboardInterrupt:
        raise SystemExit("Stopped. The same command continues from here") from None


if __name__ == "__main__":
    main()

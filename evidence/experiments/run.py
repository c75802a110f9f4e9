"""Execution of a plan: corpora, the files of the rivals, and all runs, with a process per core.

    python -m experiments.run plan.yml small --data ../../data
    python -m experiments.run plan.yml                            # how long each size takes, and what is left of it

What is done is passed over, unless its config has changed, so the same command continues after a stop.
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
    """Carry out the outstanding runs of a size.

    Raises:
        OSError, ValueError: the plan or the data cannot be used, or another process carries out this size.
    """
    plan = without_absent(plan, size, data_folder)
    runs = [run for run in plan.runs(size) if not done(run)]
    # Those that need no raw text come first: the files of the rivals take as long as a dozen runs.
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
    """Call a function for each item, in a new process each, and print what it returns.

    After an error, no further process is started.
    """
    # A new process for each, so that none has the memory, or the random numbers, of another.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, max_tasks_per_child=1) as pool:
        for number, line in enumerate(pool.map(work, items), 1):
            print(f"[{number}/{len(items)}] {line}", flush=True)


def train(run: Run) -> str:
    """Carry out a run, and return a line about it."""
    # What configs name; the folder that this runs in is on the path of modules.
    import register  # noqa: F401

    from . import init_tok2vec, numpy_ops  # noqa: F401

    try:
        return f"{run.name}: {carry_out(run):.1f} minutes"
    except BlockingIOError as error:
        # Of a command that was killed: its processes end what they have begun.
        return f"{run.name} is left out. {error}"


def budget(plan: Plan, size: str, processes: int) -> str:
    """Return a line with the planned time of a size and of its outstanding part."""
    runs = plan.runs(size)
    left = [run for run in runs if not done(run)]
    whole = planned_minutes(plan, runs, rivals.needed(runs))
    rest = planned_minutes(plan, left, rivals.missing(left))
    return (
        f"{size}: {len(runs)} runs, about {_duration(whole / processes)} in {processes} processes;"
        f" {len(left)} runs left, about {_duration(rest / processes)}"
    )


def planned_minutes(plan: Plan, runs: Iterable[Run], resources: Iterable[rivals.Resource]) -> float:
    """Return the minutes of one core that runs and the files of rivals may take."""
    return sum(run.minutes for run in runs) + rivals.planned_minutes(plan, list(resources))


def _duration(minutes: float) -> str:
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"


def without_absent(plan: Plan, size: str, data_folder: Path) -> Plan:
    """Return the plan without the runs whose data are missing, and print a line for each set that names the missing
    files.

    Raises:
        FileNotFoundError: there are no data for any run.
    """
    runs = plan.runs(size)
    missing = [(run, files) for run in runs if (files := absent(plan, run, data_folder))]
    if runs and len(missing) == len(runs):
        raise FileNotFoundError(
            f"{data_folder}: nothing that size {size} reads; README.md says which files the data folder has"
            " (--vars.data)"
        )
    by_set = {str(run.data): files for run, files in missing}
    for name, files in by_set.items():
        print(f"{name} is passed over: no {', '.join(map(str, files))}", flush=True)
    passed_over = {run.name for run, _ in missing}
    of_text = [run for run in runs if rivals.needs_raw_text(run) and run.name not in passed_over]
    if of_text and (pattern := rivals.absent_text(plan, size, data_folder)) is not None:
        variants = ", ".join(dict.fromkeys(run.variant for run in of_text))
        print(f"What needs raw text ({variants}) is passed over: no {pattern}", flush=True)
        passed_over |= {run.name for run in of_text}
    return dataclasses.replace(plan, passed_over=frozenset(passed_over))


def _cores() -> int:
    # Not cpu_count: `taskset` or a batch system may grant fewer.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main() -> None:
    """Parse the arguments, and carry out the plan or print its budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument("size", nargs="?", metavar="SIZE", help="none: the budget of all")
    parser.add_argument("--data", type=Path, default=Path("assets"), help="the data folder")
    parser.add_argument("--processes", type=int, default=_cores(), help="at a time")
    args = parser.parse_args()
    # The processes of the runs inherit it: their minutes are those of one core.
    os.environ.update({f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")})
    try:
        plan = Plan.read(args.plan)
        if args.size is not None:
            run(plan, args.size, args.data, args.processes)
            return
        for size in plan.content["sizes"]:
            print(budget(plan, size, args.processes))
        print("Without conversion, probes, figures and report.")
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise SystemExit(str(error)) from error
    except KeyboardInterrupt:
        raise SystemExit("stopped; the same command goes on from here") from None


if __name__ == "__main__":
    main()

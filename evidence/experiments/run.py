"""Execution of a plan: corpora, the files of the rivals, and all runs, with a process per core.

    python -m experiments.run plan.yml small --data ../../data

Finished runs are left as they are unless their config has changed, so the same command continues after a stop.
"""

import argparse
import dataclasses
import signal
from collections.abc import Iterable
from pathlib import Path

from .corpora import absent, make
from .lock import locked
from .plan import Plan, Run
from .results import record_of
from .rivals import absent_text, needs_raw_text
from .schedule import JobFailed, carry_out, cores
from .spelling import spelling_of
from .stages import budget, outstanding, stages
from .training import config_digest
from .whole_file import remove_abandoned


def run(plan: Plan, size: str, data_folder: Path, processes: int) -> None:
    """Carry out the outstanding jobs of a size.

    Raises:
        OSError, ValueError: the plan or the data cannot be used, or another process carries out this size.
        JobFailed: a process ended with an error.
    """
    plan = without_absent(plan, size, data_folder)
    with locked(Path("metrics", size, ".lock")):
        for folder in ("corpus", "metrics", "rivals", "training"):
            remove_abandoned(Path(folder))
        forget_changed(plan.runs(size))
        jobs = stages(plan, size, data_folder)
        print(budget(size, jobs, processes), flush=True)
        corpora = [corpus for run in plan.runs(size) for corpus in run.corpora]
        make(plan, corpora, data_folder, processes, spelling_of(plan.size(size).get("weights")))
        for stage in outstanding(jobs):
            carry_out(stage, processes)


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
    of_text = [run for run in runs if needs_raw_text(run) and run.name not in passed_over]
    if of_text and (pattern := absent_text(plan, size, data_folder)) is not None:
        variants = ", ".join(dict.fromkeys(run.variant for run in of_text))
        print(f"What needs raw text ({variants}) is passed over: no {pattern}", flush=True)
        passed_over |= {run.name for run in of_text}
    return dataclasses.replace(plan, passed_over=frozenset(passed_over))


def forget_changed(runs: Iterable[Run]) -> None:
    """Remove the scores of runs whose config has changed since, so that they are done again, and name them.

    Raises:
        ValueError: see `record_of`.
    """
    for run in runs:
        scores = [path for path in run.metrics.values() if path.is_file()]
        trained_by = {record_of(path).get("config") for path in scores}
        if scores and trained_by != {config_digest(run)}:
            print(f"{run.name} is done again: its config has changed", flush=True)
            for path in scores:
                path.unlink()


def main() -> None:
    """Parse the arguments and carry out the plan."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument("size", metavar="SIZE")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the data folder")
    parser.add_argument("--processes", type=int, default=cores(), help="at a time")
    args = parser.parse_args()
    # As Ctrl-C does: the processes that are under way are ended, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(Plan.read(args.plan), args.size, args.data, args.processes)
    except (OSError, ValueError, JobFailed) as error:
        raise SystemExit(str(error)) from error
    except KeyboardInterrupt:
        raise SystemExit("stopped; the same command goes on from here") from None


if __name__ == "__main__":
    main()

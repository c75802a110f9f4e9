"""`python -m tests.fuzz`: damaged files for every loader, for some minutes; a table of counts, and seeds of defects.

python -m tests.fuzz --minutes 10                         all targets in turn, from a seed drawn at the start
python -m tests.fuzz --mutations 1000 --seed 0            a thousand of each
python -m tests.fuzz --targets weights corpus --seed 17 --mutations 1     one of them again
"""

import argparse
import random
import sys
import time

from tests.fuzz.run import TARGETS, Report, run
from tests.fuzz.target import DEFECTS, EQUAL, OTHER, REFUSED

_PER_TURN = 200
_COLUMNS = (REFUSED, EQUAL, OTHER, *DEFECTS)


def main() -> int:
    """Run the targets, print the table, and return the exit code: 1 if there is a defect."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, help="time; default: until --mutations are done")
    parser.add_argument("--mutations", type=int, default=1 << 40, help="number for each target")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--targets", nargs="*", choices=sorted(TARGETS), default=sorted(TARGETS))
    args = parser.parse_args()
    if args.minutes is None and args.mutations == 1 << 40:
        parser.error("give --minutes or --mutations")
    end = time.monotonic() + 60 * (args.minutes if args.minutes is not None else 1 << 30)
    sys.stdout.reconfigure(errors="backslashreplace")
    reports = {name: Report() for name in args.targets}
    print(f"Seeds from {args.seed}", flush=True)
    for first in range(args.seed, args.seed + args.mutations, _PER_TURN):
        seeds = range(first, min(first + _PER_TURN, args.seed + args.mutations))
        for name, report in reports.items():
            if time.monotonic() < end:
                _run(name, seeds, report)
        done = sum(sum(report.counts.values()) for report in reports.values())
        print(f"{done:,} mutations, seeds to {seeds.stop - 1}", flush=True)
        if time.monotonic() >= end:
            break
    _print_table(reports)
    return 1 if any(report.defects for report in reports.values()) else 0


def _run(name: str, seeds: range, report: Report) -> None:
    for seed, outcome in run(name, seeds):
        report.add(seed, outcome)
        if outcome.kind in DEFECTS:
            print(f"{name} {seed}: {outcome.kind}\n{outcome.detail}", flush=True)


def _print_table(reports: dict[str, Report]) -> None:
    print(f"{'':20}{'mutations':>10}" + "".join(f"{kind:>11}" for kind in _COLUMNS))
    rows = {name: report.counts for name, report in reports.items()}
    rows["all"] = sum(rows.values(), start=type(next(iter(rows.values())))())
    for name, counts in rows.items():
        cells = "".join(f"{counts[kind]:>11,}" for kind in _COLUMNS)
        print(f"{name:20}{sum(counts.values()):>10,}{cells}")


if __name__ == "__main__":
    sys.exit(main())

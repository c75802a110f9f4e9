"""Time that spacy-elmo adds to `import spacy`, `spacy.blank("en")` and the start of `python -m spacy`.

Each measurement is a new process. spaCy starts without the entry points of spacy-elmo; then the import of their modules
is timed. The difference between two complete starts would be smaller than its noise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from importlib.metadata import EntryPoint, distribution
from pathlib import Path

NAME = "spacy-elmo"
GROUPS = ("spacy_factories", "spacy_cli")
"""The groups of entry points that spaCy imports at its start, even if nothing uses them."""


def measure() -> dict[str, float]:
    """Measure the import times of spaCy and of our groups in ms. This process must not have imported spaCy yet."""
    import catalogue

    ours = distribution(NAME).entry_points
    catalogue.AVAILABLE_ENTRY_POINTS = _Without(catalogue.AVAILABLE_ENTRY_POINTS, ours)
    times = {"spacy": _milliseconds("import spacy; spacy.blank('en')")}
    _milliseconds("import spacy.cli")  # not counted, because it is part of spaCy
    loaded = [name for name in sys.modules if name.partition(".")[0] == "spacy_elmo"]
    assert not loaded, f"spaCy has imported {loaded[0]}, so its time includes time of spacy-elmo"
    for group in GROUPS:
        modules = sorted({entry.module for entry in ours if entry.group == group})
        times[group] = _milliseconds(f"import {', '.join(modules)}")
    return times


class _Without:
    """The installed entry points in the form that catalogue uses, without those of one distribution."""

    def __init__(self, entries: object, hidden: tuple[EntryPoint, ...]) -> None:
        self._entries, self._hidden = entries, list(hidden)

    def select(self, **criteria: str) -> list[EntryPoint]:
        return [entry for entry in self._entries.select(**criteria) if entry not in self._hidden]


def _milliseconds(statement: str) -> float:
    start = time.perf_counter()
    exec(statement, {})
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, help="number of processes")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument(
        "--only", action="store_true", help="measure once, in this process, and print JSON"
    )
    args = parser.parse_args()
    if args.only:
        print(json.dumps(measure()))
        return
    command = [sys.executable, __file__, "--only"]
    rounds = [
        json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        for _ in range(args.repeats)
    ]
    medians = {name: statistics.median(times[name] for times in rounds) for name in rounds[0]}
    medians["added"] = statistics.median(sum(times[g] for g in GROUPS) for times in rounds)
    print(f"medians of {args.repeats} processes\n")
    for name, value in medians.items():
        print(f"{name:20}{value:9.1f} ms")
    if args.out:
        args.out.write_text(json.dumps(medians, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()

"""What having spacy-elmo installed adds to `import spacy`, `spacy.blank("en")` and the start of `python -m spacy`.

Each measurement is a process of its own, in which spaCy first does without our entry points; then what they name is
imported, and that is timed. A difference of two whole starts would drown in their noise.
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
"""Those of which spaCy imports every entry at its start, asked for or not."""


def measure() -> dict[str, float]:
    """Milliseconds in this process, which has not imported spaCy yet: spaCy's own, and each group's of ours."""
    import catalogue

    own = distribution(NAME).entry_points
    catalogue.AVAILABLE_ENTRY_POINTS = _Without(catalogue.AVAILABLE_ENTRY_POINTS, own)
    found = {"spacy": _milliseconds("import spacy; spacy.blank('en')")}
    _milliseconds("import spacy.cli")  # it is there before it imports any command of ours
    loaded = [name for name in sys.modules if name.partition(".")[0] == "spacy_elmo"]
    assert not loaded, f"spaCy has imported {loaded[0]}: its own time cannot be told from ours"
    for group in GROUPS:
        modules = sorted({entry.module for entry in own if entry.group == group})
        found[group] = _milliseconds(f"import {', '.join(modules)}")
    return found


class _Without:
    """Entry points as catalogue asks for them, those of one distribution left out."""

    def __init__(self, entries: object, hidden: tuple[EntryPoint, ...]) -> None:
        self._entries, self._hidden = entries, list(hidden)

    def select(self, **wanted: str) -> list[EntryPoint]:
        return [entry for entry in self._entries.select(**wanted) if entry not in self._hidden]


def _milliseconds(statement: str) -> float:
    start = time.perf_counter()
    exec(statement, {})
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, help="processes")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--only", action="store_true", help="measure this process, as JSON")
    args = parser.parse_args()
    if args.only:
        print(json.dumps(measure()))
        return
    command = [sys.executable, __file__, "--only"]
    rounds = [
        json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        for _ in range(args.repeats)
    ]
    found = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    found["added"] = statistics.median(sum(each[g] for g in GROUPS) for each in rounds)
    print(f"medians of {args.repeats} processes\n")
    for name, value in found.items():
        print(f"{name:20}{value:9.1f} ms")
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()

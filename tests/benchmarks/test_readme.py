"""The README of the benchmarks lists every program once."""

import re
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_every_program_has_one_line():
    text = (BENCHMARKS / "README.md").read_text("utf8")
    listed = re.findall(r"^\| `(\w+\.py)` \|", text, re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in BENCHMARKS.glob("*.py"))

"""The README of the benchmarks lists every program once, and each program starts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_every_program_has_one_line():
    text = (BENCHMARKS / "README.md").read_text("utf8")
    listed = re.findall(r"^\| `(\w+\.py)` \|", text, re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in BENCHMARKS.glob("*.py"))


@pytest.mark.parametrize("program", sorted(path.name for path in BENCHMARKS.glob("*.py")))
def test_every_program_starts(program):
    command = [sys.executable, str(BENCHMARKS / program), "--help"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"usage: {program}")

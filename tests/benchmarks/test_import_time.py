"""The benchmark of import times separates the time of spacy-elmo from that of spaCy."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "import_time.py"


def test_one_process():
    """The benchmark itself fails if spaCy's part imports modules of spacy-elmo."""
    command = [sys.executable, SCRIPT, "--only"]
    times = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert set(times) == {"spacy", "spacy_factories", "spacy_cli"}
    # The commands come after the factories, and torch after spaCy: shared imports are counted once.
    assert 0 < times["spacy_cli"] < times["spacy"] > times["spacy_factories"] > 0

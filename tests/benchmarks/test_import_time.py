"""The benchmark of import times tells ours from spaCy's."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "import_time.py"


def test_one_process():
    """It fails by itself where spaCy's part imports ours."""
    command = [sys.executable, SCRIPT, "--only"]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert set(found) == {"spacy", "spacy_factories", "spacy_cli"}
    # The commands come after the factories, and torch after spaCy: whatever is shared is counted once.
    assert 0 < found["spacy_cli"] < found["spacy"] > found["spacy_factories"] > 0

"""The loading benchmark measures time and memory in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_elmo.bilm.weights import Weights
from tests import tiny

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "loading.py"


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="resident memory is read from /proc"
)
def test_one_measurement(tmp_path):
    """The bytes of a file take the memory of the file."""
    Weights.from_bilm(tiny.bilm(tiny.config(dim=100_000, layers=1))).save(
        tmp_path / "float32.safetensors"
    )
    command = [sys.executable, SCRIPT, "--only", "the bytes of the file", "--files", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    size = (tmp_path / "float32.safetensors").stat().st_size / 1e6
    assert measured["peak"] == pytest.approx(size, abs=5)
    assert 0 < measured["seconds"] < 60

"""The loading benchmark: what it measures is what a process says of itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_elmo.bilm.weights import Weights
from tests import tiny

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "loading.py"


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="Linux tells a process its memory there"
)
def test_one_measurement(tmp_path):
    """The bytes of a file take the memory of the file."""
    Weights.of(tiny.bilm(tiny.config(dim=100_000, layers=1))).write(
        tmp_path / "float32.safetensors"
    )
    command = [sys.executable, SCRIPT, "--only", "the bytes of the file", "--files", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    size = (tmp_path / "float32.safetensors").stat().st_size / 1e6
    assert found["peak"] == pytest.approx(size, abs=5)
    assert 0 < found["seconds"] < 60

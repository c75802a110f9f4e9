"""Some seeds of each target of `make fuzz`."""

import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's"),
]


@pytest.mark.parametrize("name", ["weights", "weights-sealed", "checkpoint", "corpus"])
def test_damaged_files(name):
    command = [sys.executable, "-m", "tests.fuzz", name, "0", "40"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "'refused'" in done.stdout

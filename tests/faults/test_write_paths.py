"""Full and broken disks under the writers of weights, checkpoints and corpora: one error that names the file, the old
one intact, nothing left over.

A library that is preloaded lets calls of the C library fail (`failing_calls.c`), because monkeypatched functions of
Python would miss what torch and NumPy write themselves.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.inject import WRITERS

_ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("gcc") is None, reason="needs Linux and gcc"
    ),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("faults") / "failing_calls.so"
    source = Path(__file__).with_name("failing_calls.c")
    command = ["gcc", "-shared", "-fPIC", "-Wall", str(source), "-o", str(path), "-ldl"]
    subprocess.run(command, check=True)
    return path


@pytest.mark.parametrize("name", WRITERS)
def test_a_call_fails(library, name):
    environment = {**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.faults.inject", name]
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

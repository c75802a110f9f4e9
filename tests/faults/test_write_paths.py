"""Full and broken disks under everything that writes: one error that names the file, the old one intact, no litter.

A library that is preloaded lets calls of the C library fail (`failing_calls.c`), because monkeypatched functions of
Python would miss what pyarrow, usearch and NumPy write themselves, and a small tmpfs needs rights that not every
machine gives. Each call can fail, so every place on a write path is met, also renames and flushes.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.writers import WRITERS

_ROOT = Path(__file__).parents[2]
_PACKAGE = _ROOT / "spacy_elmo"
_MOST = 8
_ATOMIC = {"atomic_file", "atomic_write", "atomic_folder", "all_or_nothing"}

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
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wall", str(source), "-o", str(path), "-ldl"], check=True
    )
    return path


@pytest.fixture(scope="module")
def reports(library):
    """Return the lines that `inject` prints for all writers, by name."""
    environment = {**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.faults.inject", str(_MOST)]
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{lines[-1:]} {done.stderr[-3000:]}"
    reports = {name: [] for name in WRITERS}
    for line in lines:
        if "name" in line:
            reports[line["name"]].append(line)
    return reports


@pytest.mark.parametrize("name", WRITERS)
def test_a_call_fails(reports, name):
    calls, *problems = reports[name]
    assert calls["calls"] > 3
    assert not problems, "\n".join(f"{p['error']} at {p['at']}: {p['problem']}" for p in problems)


def test_every_module_that_writes_has_a_writer():
    """A new module that writes files must be added to `WRITERS`."""
    writing = set()
    for path in _PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf8"))
        called = {
            n.func.id
            for n in ast.walk(tree)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }
        if called & _ATOMIC and path.name != "files.py":
            writing.add(".".join(path.relative_to(_PACKAGE).with_suffix("").parts))
    # `init-config` and `embed` write as all others, and downloads are tested with their server.
    assert writing - {"cli.init_config", "converters.download", "lab.embed"} == {
        w.module for w in WRITERS.values()
    }


def test_the_native_code_allocates_nothing():
    """No allocation of the kernels can fail: all their memory is torch's."""
    from spacy_elmo.bilm.kernels import native

    if not native.library():
        pytest.skip("there is no compiler")
    command = ["nm", "--dynamic", "--undefined-only", str(native.path())]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert not any(name in names for name in ("alloc", "memalign", "mmap", "_Znw"))

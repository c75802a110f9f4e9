"""Rows are divided among torch's threads: every row is processed once, by the requested threads, with the same
numbers."""

import ctypes
import subprocess
import sys
import textwrap
import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.kernels import native
from tests.threads import torch_threads

pytestmark = pytest.mark.skipif(not native.library(), reason="there is no compiler")

ROWS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
MANY = 2**20


def shared(threads, rows, numbers_per_row=MANY):
    """Return the sorted parts, and the number of threads that processed them."""
    parts, done_by = [], set()

    @ROWS
    def work(_, first, last):
        parts.append((first, last))
        done_by.add(threading.get_native_id())

    sizes = map(ctypes.c_int64, (threads, rows, numbers_per_row))
    ctypes.CDLL(str(native.path())).spacy_elmo_share_rows(*sizes, work, None)
    return sorted(parts), len(done_by)


@settings(deadline=None)
@given(threads=st.integers(1, 9), rows=st.integers(0, 40))
def test_every_row_is_done_once(threads, rows):
    parts, _ = shared(threads, rows)
    assert [row for part in parts for row in range(*part)] == list(range(rows))


@pytest.mark.skipif(sys.platform != "linux", reason="torch's OpenMP is of another kind")
def test_by_as_many_threads_as_were_asked_for():
    assert shared(3, 9) == ([(0, 3), (3, 6), (6, 9)], 3)
    assert shared(1, 9) == ([(0, 9)], 1)


@pytest.mark.skipif(sys.platform == "win32", reason="OpenMP cannot be found")
@pytest.mark.parametrize("chosen, expected", [(None, 1), ("2", 2)])
def test_threads_of_inference_count_only_in_its_thread(monkeypatch, chosen, expected):
    monkeypatch.delenv(native.THREADS, raising=False)
    if chosen:
        monkeypatch.setenv(native.THREADS, chosen)
    numbers = {}

    def other():
        numbers["new thread"] = torch.get_num_threads()

    with torch_threads(3):
        with native.inference_threads(), native.inference_threads():
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            numbers["inside"] = torch.get_num_threads()
        numbers["after"] = torch.get_num_threads()
        with pytest.raises(ValueError, match="own"), native.inference_threads():
            raise ValueError("own")
        numbers["after an error"] = torch.get_num_threads()
    assert numbers == {"new thread": 3, "inside": expected, "after": 3, "after an error": 3}


def test_a_little_is_done_at_once():
    assert shared(3, 9, numbers_per_row=1) == ([(0, 9)], 1)


def test_torchs_threads_live_on():
    """A team that is smaller than torch's would make GCC's OpenMP end threads, and torch's next operation would start
    them again."""
    code = """
        import os, torch
        from tests.bilm.kernels.test_threads import shared
        torch.set_num_threads(4)
        numbers, seen = torch.ones(2**20), set()
        for _ in range(10):
            numbers.mul_(1.0)
            shared(4, 2)
            seen |= set(os.listdir("/proc/self/task"))
        numbers.mul_(1.0)
        print(seen == set(os.listdir("/proc/self/task")))
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"

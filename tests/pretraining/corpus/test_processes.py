"""Parallel map over several processes."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from spacy_elmo.pretraining.corpus.processes import in_order


def work(task: tuple[int, float]) -> tuple[int, int]:
    number, seconds = task
    time.sleep(seconds)
    if number == 13:
        raise ValueError("thirteen")
    if number == 99:
        os.kill(os.getpid(), signal.SIGKILL)
    return number, os.getpid()


@pytest.mark.parametrize("n_process", [1, 3])
def test_results_come_in_order(n_process):
    # The first takes longest.
    actual = [
        *in_order(work, [(number, 0.02 * (number % 3 == 0)) for number in range(10)], n_process)
    ]
    assert [number for number, _ in actual] == [*range(10)]
    assert (os.getpid() in {process for _, process in actual}) == (n_process == 1)


@pytest.mark.parametrize("n_process", [1, 2])
def test_tasks_are_taken_as_they_are_needed(n_process):
    taken = []

    def tasks():
        for number in range(1000):
            taken.append(number)
            yield number, 0

    results = in_order(work, tasks(), n_process)
    for number in range(5):
        assert next(results)[0] == number
        assert len(taken) <= number + 2 * n_process + 1
    results.close()
    assert len(taken) < 12 and not multiprocessing.active_children()


def test_an_error_of_the_function_is_raised_here():
    with pytest.raises(ValueError, match="thirteen"):
        list(in_order(work, [(1, 0), (13, 0), (2, 0)], 2))
    assert not multiprocessing.active_children()


def test_a_process_that_dies_is_an_error():
    """A `multiprocessing.Pool` would wait for it forever."""
    with pytest.raises(ChildProcessError, match="One of 2 processes died"):
        list(in_order(work, [(1, 0), (99, 0), (2, 0)], 2))


PROGRAM = """
import os, time
from spacy_elmo.pretraining.corpus.processes import in_order

def work(task):
    os.write(1, b"%d\\n" % os.getpid())  # at once, so that the lines of two processes never mix
    time.sleep(task)

if __name__ == "__main__":
    list(in_order(work, [600, 600], 2))
"""


def test_processes_end_with_a_parent_that_is_killed(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    with subprocess.Popen([sys.executable, tmp_path / "program.py"], stdout=subprocess.PIPE) as run:
        try:
            children = [int(run.stdout.readline()) for _ in range(2)]
        finally:
            run.kill()
    deadline = time.monotonic() + 60
    while any(map(_runs, children)):
        assert time.monotonic() < deadline, "they outlive their parent"
        time.sleep(0.02)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # What has ended stays listed until somebody asks; a killed parent never does.
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"

"""The lock of a run: one process at a time, named to the others, and released however it ends."""

import os
import re
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from spacy_elmo.run_lock import LOCK, lock
from tests import processes


def hold(path: Path, held: Path) -> None:
    """Hold the lock until the process is killed."""
    with lock(path):
        held.touch()
        time.sleep(600)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.01)


@pytest.mark.parametrize("is_folder", [True, False])
def test_another_process_is_refused_until_the_first_is_killed(tmp_path, is_folder):
    path = tmp_path / "run"
    if is_folder:
        path.mkdir()
    first = processes.start(hold, path, tmp_path / "held")
    wait_for(tmp_path / "held")
    for _ in range(2):
        with pytest.raises(BlockingIOError) as error, lock(path):
            pass
        holder = rf"process {first.pid} on {re.escape(socket.gethostname())}, since \d{{4}}-"
        assert re.search(rf"writing to {path}: {holder}", str(error.value))
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    with lock(path):
        pass
    left = {file.name for file in tmp_path.rglob("*")}
    assert left == {"held", "run"} if is_folder else {"held"}


def test_another_thread_is_refused(tmp_path):
    errors = []

    def run() -> None:
        try:
            with lock(tmp_path):
                errors.append(None)
        except BlockingIOError as error:
            errors.append(str(error))

    with lock(tmp_path):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert f"process {os.getpid()} on " in errors[0]
    run()
    assert errors[1:] == [None]


def test_an_error_releases_the_lock(tmp_path):
    with pytest.raises(KeyError), lock(tmp_path):
        assert (tmp_path / LOCK).exists()
        raise KeyError
    with lock(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_symbolic_link_is_the_same_place(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    with lock(tmp_path / "run"):
        with pytest.raises(BlockingIOError, match="Another run"), lock(tmp_path / "link"):
            pass

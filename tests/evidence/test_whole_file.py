"""Files and folders appear whole or not at all, however their process ends."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from experiments.whole_file import remove_abandoned, whole_file, whole_folder

from tests.evidence.folders import EVIDENCE

SLOW = """
import sys, time
from pathlib import Path
from experiments.whole_file import whole_folder
with whole_folder(Path(sys.argv[1])) as folder:
    (folder / "half").touch()
    print("begun", flush=True)
    time.sleep(60)
"""


def stopped(path, how):
    """The exit status of a process that was in the middle of writing."""
    command = [sys.executable, "-c", SLOW, str(path)]
    with subprocess.Popen(command, cwd=EVIDENCE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(how)
        return process.wait(20)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_replaced_and_an_error_changes_nothing(tmp_path):
    for name in ("old", "new"):
        with whole_folder(tmp_path / "a") as folder:
            (folder / name).touch()
    assert names(tmp_path / "a") == ["new"]
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "a") as folder:
        raise ZeroDivisionError
    assert names(tmp_path) == ["a"] and names(tmp_path / "a") == ["new"]


def test_sigterm_leaves_nothing(tmp_path):
    assert stopped(tmp_path / "a", signal.SIGTERM) == 128 + signal.SIGTERM
    assert names(tmp_path) == []


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    assert stopped(tmp_path / "deep" / "a", signal.SIGKILL) == -signal.SIGKILL
    alive = [f".b.json.{os.getpid()}.partial", f".c.{os.getppid()}-7.partial"]
    for name in (*alive, "a.json", ".d.partial"):
        (tmp_path / "deep" / name).touch()
    assert len(names(tmp_path / "deep")) == 5
    remove_abandoned(tmp_path)
    assert names(tmp_path / "deep") == sorted([*alive, "a.json", ".d.partial"])
    remove_abandoned(tmp_path / "none")


def test_handlers_are_as_they_were(tmp_path):
    def own(number, frame):
        pass

    for handler in (signal.SIG_DFL, own):
        before = signal.signal(signal.SIGTERM, handler)
        try:
            with whole_file(tmp_path / "a") as file:
                file.touch()
                assert (signal.getsignal(signal.SIGTERM) is handler) == (handler is own)
            assert signal.getsignal(signal.SIGTERM) is handler
        finally:
            signal.signal(signal.SIGTERM, before)


def test_threads_may_write(tmp_path):
    def write():
        with whole_file(tmp_path / "a") as file:
            file.touch()

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert names(tmp_path) == ["a"]

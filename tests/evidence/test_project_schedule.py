"""Jobs in several processes, with commands that take no time: repeated jobs, finished jobs and messages."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from experiments.lock import locked
from experiments.schedule import Job, JobFailed, carry_out, left, planned_minutes

EVIDENCE = Path(__file__).parents[2] / "evidence"
# Notes that it began, waits for a file if it is told to, and makes its output.
FAKE = """
import os, sys, time
name, folder, wait = sys.argv[1:]
with open(f"{folder}/begun", "a") as file:
    file.write(f"{name} {os.getpid()} {os.environ['OMP_NUM_THREADS']}\\n")
while wait and not os.path.exists(wait):
    time.sleep(0.01)
print(f"{name} says this")
open(f"{folder}/{name}.partial", "w").close()
os.replace(f"{folder}/{name}.partial", f"{folder}/{name}.json")
"""
DRIVER = """
import signal, sys
from pathlib import Path
from tests.evidence.test_project_schedule import jobs
from experiments.schedule import carry_out
for number in (signal.SIGTERM, signal.SIGINT):  # a process in the background is born deaf to the latter
    signal.signal(number, signal.default_int_handler)
carry_out(jobs(Path(sys.argv[1]), "a", "b", "c", waiting="b"), 1, pause=0.01)
"""


def job(folder, name, command=None, minutes=1.0, wait=""):
    command = command or [sys.executable, "-c", FAKE, name, str(folder), str(wait)]
    return Job(name, command, [folder / f"{name}.json"], minutes, folder / f"{name}.log")


def jobs(folder, *names, waiting=""):
    """One of them waits for the file `go`."""
    return [job(folder, name, wait=folder / "go" if name == waiting else "") for name in names]


def begun(folder):
    """Names in the order in which jobs began."""
    return [line.split()[0] for line in (folder / "begun").read_text().splitlines()]


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_each_is_done_once_in_order_and_what_is_done_is_passed_over(tmp_path):
    (tmp_path / "b.json").touch()
    lines = []
    carry_out(jobs(tmp_path, "a", "b", "c"), 1, report=lines.append, pause=0.01)
    assert begun(tmp_path) == ["a", "c"]
    assert [line.split(":")[0] for line in lines] == ["[2/3] a", "[3/3] c"]
    carry_out(jobs(tmp_path, "a", "b", "c"), 1, report=lines.append, pause=0.01)
    assert begun(tmp_path) == ["a", "c"] and len(lines) == 2


def test_several_at_a_time_with_one_thread_each(tmp_path):
    # Each ends only when the other has begun.
    both = [
        job(tmp_path, "a", wait=tmp_path / "b.log"),
        job(tmp_path, "b", wait=tmp_path / "a.log"),
    ]
    carry_out(both, 2, pause=0.01)
    assert sorted(begun(tmp_path)) == ["a", "b"]
    assert {line.split()[2] for line in (tmp_path / "begun").read_text().splitlines()} == {"1"}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_killed_and_begun_again(tmp_path, how):
    """Whatever stops it, a done job is not repeated, and the one that was under way is."""
    environment = {**os.environ, "PYTHONPATH": f"{EVIDENCE}{os.pathsep}{EVIDENCE.parent}"}
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path)], env=environment, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: (tmp_path / "begun").exists() and begun(tmp_path) == ["a", "b"])
    driver.send_signal(how)
    assert driver.wait(20) != 0
    under_way = int((tmp_path / "begun").read_text().splitlines()[1].split()[1])
    if how == signal.SIGKILL:
        # Nobody was left to end it.
        os.kill(under_way, signal.SIGKILL)
    else:
        with pytest.raises(ProcessLookupError):
            os.kill(under_way, 0)
    assert [job.name for job in left(jobs(tmp_path, "a", "b", "c"))] == ["b", "c"]

    (tmp_path / "go").touch()
    carry_out(jobs(tmp_path, "a", "b", "c", waiting="b"), 1, pause=0.01)
    assert begun(tmp_path) == ["a", "b", "b", "c"]


def test_a_job_holds_the_lock_that_its_parent_was_killed_with(tmp_path):
    environment = {**os.environ, "PYTHONPATH": f"{EVIDENCE}{os.pathsep}{EVIDENCE.parent}"}
    lock = tmp_path / "metrics" / ".lock"
    script = f"""
from experiments.lock import locked
from pathlib import Path
with locked(Path({str(lock)!r})):
    {DRIVER.strip().replace(chr(10), chr(10) + "    ")}
"""
    driver = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], env=environment)
    wait_until(lambda: (tmp_path / "begun").exists() and begun(tmp_path) == ["a", "b"])
    for _ in range(2):
        with pytest.raises(BlockingIOError, match="locked; another `run` of this size"):
            with locked(lock):
                pass
        driver.kill()
        driver.wait(20)
    (tmp_path / "go").touch()

    def free():
        try:
            with locked(lock):
                return True
        except BlockingIOError:
            return False

    wait_until(free)
    assert (tmp_path / "b.json").exists()


def test_failure_shows_the_end_of_its_log_and_stops(tmp_path):
    script = "print('\\n'.join(map(str, range(100)))); raise SystemExit('out of luck')"
    broken = job(tmp_path, "broken", [sys.executable, "-c", script])
    with pytest.raises(JobFailed) as caught:
        carry_out([*jobs(tmp_path, "a"), broken, *jobs(tmp_path, "b")], 1, pause=0.01)
    message = str(caught.value)
    assert message.startswith(f"broken ended with 1. The end of {tmp_path / 'broken.log'}:\n")
    assert "    99\n    out of luck\n" in message and "    70\n" not in message
    assert begun(tmp_path) == ["a"]


def test_success_without_the_file_is_a_failure(tmp_path):
    with pytest.raises(JobFailed, match="lazy did not make .*lazy.json"):
        carry_out([job(tmp_path, "lazy", [sys.executable, "-c", ""])], 1, pause=0.01)


def test_failure_ends_the_others(tmp_path):
    broken = job(tmp_path, "broken", [sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(JobFailed, match="broken ended with 3"):
        carry_out([job(tmp_path, "a", wait=tmp_path / "never"), broken], 2, pause=0.01)
    assert not (tmp_path / "a.json").exists()
    # It may have been ended before it could say that it began.
    if (tmp_path / "begun").exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "begun").read_text().split()[1]), 0)


@pytest.mark.parametrize(
    "minutes, processes, expected",
    [([], 2, 0), ([3, 3, 3], 1, 9), ([3, 3, 3], 2, 6), ([1, 5, 2, 2], 2, 5), ([7], 4, 7)],
)
def test_planned_minutes(tmp_path, minutes, processes, expected):
    planned = [job(tmp_path, str(i), minutes=m) for i, m in enumerate(minutes)]
    assert planned_minutes(planned, processes) == expected

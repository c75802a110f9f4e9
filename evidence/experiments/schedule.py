"""Jobs in several processes: finished ones are left out, the remaining time is printed, and a failure stops all."""

from __future__ import annotations

import math
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

TAIL = 30
"""Number of lines of the log in the message of a failure."""

_print = partial(print, flush=True)


@dataclass(frozen=True, eq=False)
class Job:
    """A command that makes files, which appear whole or not at all: the job is done when all of them exist."""

    name: str
    command: Sequence[str]
    outputs: Sequence[Path]
    minutes: float
    """Planned minutes of one core."""
    log: Path
    """The file of its output."""

    @property
    def done(self) -> bool:
        """True if all its files exist."""
        return all(path.exists() for path in self.outputs)


class JobFailed(Exception):
    """The error of a job that ended with an exit code or without its files."""


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    # Not cpu_count: `taskset` or a batch system may grant fewer.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def left(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that are not done."""
    return [job for job in jobs if not job.done]


def planned_minutes(jobs: Sequence[Job], processes: int) -> float:
    """Return the minutes until all jobs are done, if each starts in this order as soon as a process is free."""
    free = [0.0] * processes
    for job in jobs:
        begin = min(free)
        free[free.index(begin)] = begin + job.minutes
    return max(free)


def carry_out(
    jobs: Sequence[Job],
    processes: int,
    *,
    report: Callable[[str], None] = _print,
    pause: float = 0.2,
) -> None:
    """Carry out the jobs that are not done, in their order.

    Its processes end with it, except after SIGKILL: an interrupted job starts again the next time.

    Args:
        processes: number of parallel processes, each with one thread.
        report: called with a line for each finished job, with the remaining time.
        pause: seconds between two checks of the processes.

    Raises:
        JobFailed: a job failed; the message has the end of its log.
    """
    waiting = left(jobs)
    running: dict[Job, tuple[subprocess.Popen[bytes], float]] = {}
    took, planned = 0.0, 0.0
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                job = waiting.pop(0)
                running[job] = (_start(job), time.monotonic())
            time.sleep(pause)
            for job, (process, began) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[job]
                _check(job, process.returncode)
                minutes = (time.monotonic() - began) / 60
                took, planned = took + minutes, planned + job.minutes
                rest = planned_minutes([*running, *waiting], processes) * took / max(planned, 1e-9)
                report(
                    f"[{len(jobs) - len(waiting) - len(running)}/{len(jobs)}] {job.name}:"
                    f" {minutes:.1f} minutes; about {math.ceil(rest)} left"
                )
    finally:
        for process, _ in running.values():
            process.terminate()
        for process, _ in running.values():
            process.wait()


def _start(job: Job) -> subprocess.Popen[bytes]:
    job.log.parent.mkdir(parents=True, exist_ok=True)
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}
    with job.log.open("wb") as log:
        return subprocess.Popen(
            job.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # What can be inherited is the lock of `run`: nobody may start the plan again while one of these is running.
            close_fds=False,
            env={**os.environ, **threads},
        )


def _check(job: Job, status: int) -> None:
    if status == 0 and job.done:
        return
    how = f"ended with {status}" if status else f"did not make {', '.join(map(str, job.outputs))}"
    lines = job.log.read_text("utf8", errors="replace").splitlines()[-TAIL:]
    tail = "\n".join(f"    {line}" for line in lines)
    raise JobFailed(
        f"{job.name} {how}. The end of {job.log}:\n{tail}\n"
        f"Done runs are kept; the same command goes on from here. Its command was: {' '.join(job.command)}"
    )

"""Parallel map over several processes, with the results in the order of the tasks."""

from __future__ import annotations

import collections
import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_TASKS_PER_PROCESS = 2
_work: Callable[[Any], Any]


def in_order(
    work: Callable[[_Task], _Result], tasks: Iterable[_Task], n_process: int
) -> Generator[_Result, None, None]:
    """Yield `work(task)` for each task, in order. If `n_process` is 1, this process calls `work`. Otherwise
    `n_process` new processes call `work`.

    Memory is bounded, because each process has at most two tasks at a time: one runs and one waits. Python's
    default start method is used, as in spaCy's `nlp.pipe`. The new processes end when this process ends, even
    if this process is killed.

    Raises:
        ChildProcessError: a process died.
    """
    if n_process == 1:
        yield from map(work, tasks)
        return
    pool = ProcessPoolExecutor(n_process, initializer=_initialize, initargs=(work,))
    try:
        remaining = iter(tasks)
        first = itertools.islice(remaining, _TASKS_PER_PROCESS * n_process)
        pending: collections.deque[Future[_Result]] = collections.deque(
            pool.submit(_run, task) for task in first
        )
        while pending:
            result = pending.popleft().result()
            pending.extend(pool.submit(_run, task) for task in itertools.islice(remaining, 1))
            yield result
    except BrokenProcessPool as error:
        raise ChildProcessError(
            f"One of {n_process} processes died: it ran out of memory, or could not start. Set prepare.n_process to a"
            " smaller number; with 1, no process is started"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _initialize(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work
    # Ctrl-C reaches every process of the terminal, but only the parent should handle it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _run(task: Any) -> Any:
    return _work(task)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)

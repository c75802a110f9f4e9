"""One function in several processes, its results in the order of its arguments."""

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
_AHEAD = 2
_work: Callable[[Any], Any]


def in_order(
    work: Callable[[_Task], _Result], tasks: Iterable[_Task], n_process: int
) -> Generator[_Result, None, None]:
    """`map(work, tasks)`, by `n_process` processes; one: by this process.

    Tasks are taken from their iterable as they are needed: for each process one is being worked on and one waits, so
    memory is bounded. Processes start as Python's default has it, as in spaCy's `nlp.pipe`, and end with this one,
    however it ends.

    Raises:
        ChildProcessError: a process died.
    """
    if n_process == 1:
        yield from map(work, tasks)
        return
    pool = ProcessPoolExecutor(n_process, initializer=_start, initargs=(work,))
    try:
        remaining = iter(tasks)
        ahead: collections.deque[Future[_Result]] = collections.deque(
            pool.submit(_run, task) for task in itertools.islice(remaining, _AHEAD * n_process)
        )
        while ahead:
            result = ahead.popleft().result()
            ahead.extend(pool.submit(_run, task) for task in itertools.islice(remaining, 1))
            yield result
    except BrokenProcessPool as error:
        raise ChildProcessError(
            f"One of {n_process} processes died: for want of memory, or it could not start. Set prepare.n_process"
            " to less; with 1 no other is started"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _start(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work
    # Ctrl-C reaches every process of the terminal: the parent's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _run(task: Any) -> Any:
    return _work(task)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)

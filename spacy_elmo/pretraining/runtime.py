"""Memory and cores of the process that trains."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

# Option numbers of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_CACHE_CAPACITIES = ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")
"""Environment variables that bound two caches: the cache of torch's interface to oneDNN, and the cache of
oneDNN itself."""
_CAPACITY = 128
"""Maximum number of entries (combinations of matrix sizes) in each cache. With 32, training is 7 % slower."""


def reuse_memory() -> None:
    """Let this process keep freed memory, and bound the memory of oneDNN's caches for matrix products.

    A training step allocates and frees buffers of tens of megabytes. By default, glibc returns freed buffers
    to the system at once. In the next step, the first access to each page of a buffer is a page fault. These
    page faults cost a quarter of the time of a step.

    Two caches keep a buffer of a few megabytes for each combination of matrix sizes, by default for 1,024
    combinations. Every batch has different sizes, so the caches of a biLM of the base size would need 7 GB
    after an hour. If the user has set the capacity of a cache, it is not changed. Call this function before
    the process computes its first matrix product, because later the bounds have no effect.
    """
    for name in _CACHE_CAPACITIES:
        os.environ.setdefault(name, str(_CAPACITY))
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        # This C library is not glibc.
        return
    # Allocate nothing by mmap. A larger M_MMAP_THRESHOLD is not enough: glibc accepts at most 32 MB, but the gates of a
    # batch of 4,096 words need more.
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)


def free_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the number of cores that this process can use: those of the machine, or of the container's quota
    (cgroup v2), without those that other processes kept busy in the last minute.

    If torch has more threads, OpenMP's threads wait for each other, and a step can take ten times as long.
    """
    cores = float(os.cpu_count() or 1)
    with contextlib.suppress(OSError, ValueError):
        quota, period = (cgroup / "cpu.max").read_text().split()
        cores = min(cores, int(quota) / int(period))
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return cores - max(load - 1, 0.0)  # the load contains this process

"""Memory and cores of the process that trains."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

# Option numbers of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
# Variables that bound the caches of torch's interface to oneDNN, and of oneDNN itself.
_CACHE_CAPACITIES = ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")
_CAPACITY = 128  # combinations of matrix sizes; with 32, training is 7 % slower


def reuse_memory() -> None:
    """Let this process keep freed memory, and bound the memory of oneDNN's caches for matrix products.

    By default, glibc returns the freed buffers of a step to the system, and the page faults of the next step take
    a quarter of its time. The two caches keep a buffer of a few megabytes for each of 1,024 combinations of matrix
    sizes, 7 GB for a biLM of the base size. Call this function before the first matrix product, because the bounds
    have no effect later.
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

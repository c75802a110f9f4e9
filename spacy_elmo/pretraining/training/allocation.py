"""Memory of a long training: freed buffers are reused by the next step, and few products keep buffers of their own."""

from __future__ import annotations

import ctypes
import os

# Option numbers of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_CACHE_CAPACITIES = ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")
"""The environment variables by which torch's interface to oneDNN, and oneDNN itself, bound their caches."""
_CAPACITY = 128
"""Number of products in each cache. A step has fewer shapes than this; a capacity of 32 makes training 7 % slower."""


def reuse_memory() -> None:
    """Let this process keep freed memory, and bound the memory that its matrix products keep, from now on.

    A step allocates and frees buffers of tens of megabytes. By default glibc returns these to the system at once, and
    the first access to each of their pages in the next step is a page fault: a quarter of the time of a step.

    Two caches keep a product of each shape, with a buffer of some megabytes: 1,024 of them by default, and every batch
    has other shapes. The base size held 7 GB after an hour for that reason. Capacities that the user has set remain.
    The bounds have an effect if the process has not computed any product yet.
    """
    for name in _CACHE_CAPACITIES:
        os.environ.setdefault(name, str(_CAPACITY))
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        # Another C library than glibc
        return
    # Serve no allocation by mmap. Raising M_MMAP_THRESHOLD is not enough: glibc accepts at most 32 MB, and the
    # activated gates of a batch of 4,096 words have more.
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)

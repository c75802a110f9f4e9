"""Memory allocation: freed buffers of one training step are reused by the next."""

from __future__ import annotations

import ctypes

# Option numbers of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
# The largest value that glibc accepts.
_MAX_MMAP_THRESHOLD = 32 << 20


def keep_freed_memory() -> None:
    """Let this process keep freed memory, in blocks of up to 32 MB, from now on. It has an effect with glibc only.

    A step allocates and frees buffers of tens of megabytes. By default glibc returns these to the system at once, and
    the first access to each of their pages in the next step is a page fault: a quarter of the time of a step.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, _MAX_MMAP_THRESHOLD)
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)

"""Memory allocation: freed buffers of one training step are reused by the next."""

from __future__ import annotations

import ctypes

# Option numbers of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Let this process keep freed memory from now on. It has an effect with glibc only.

    A step allocates and frees buffers of tens of megabytes. By default glibc returns these to the system at once, and
    the first access to each of their pages in the next step is a page fault: a quarter of the time of a step.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    # Nothing is mapped. A higher threshold for it would not do: glibc accepts 32 MB at most, and the activated gates of
    # a batch of 4,096 words have more.
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)

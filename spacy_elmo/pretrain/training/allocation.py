"""Memory that one training step leaves to the next."""

from __future__ import annotations

import ctypes

# Of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
# The most that glibc accepts.
_LARGEST = 32 << 20


def keep_freed_memory() -> None:
    """Let this process keep what it frees, up to 32 MB a piece, from now on; only glibc can be told so, elsewhere
    nothing happens.

    A step takes and frees buffers of tens of megabytes. By default glibc hands such ones back to the system at once,
    and the first touch of each of their pages in the next step is an interrupt: a quarter of a step's time.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST)
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)

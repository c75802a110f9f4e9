"""Arrays in anonymous memory maps. When such an array is deleted, the operating system gets the memory back
at once."""

from __future__ import annotations

import math
import mmap
import sys
from typing import Any

import numpy as np
from thinc.api import get_array_module

# For smaller arrays, partly used pages would waste more memory than a memory map saves.
_LEAST_BYTES = 32 * 1024


def mapped_zeros(xp: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Return an array of zeros. On the CPU, all but small arrays are in a memory map instead of the heap.

    The layers of a Doc are often deleted long before the Doc. In the heap, deleted layers would leave large
    gaps between Docs, and the process could not return the memory of these gaps to the operating system.

    Args:
        xp: numpy or cupy.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if xp is not np or size < _LEAST_BYTES:
        return xp.zeros(shape, dtype=dtype)
    try:
        if sys.platform == "win32":
            memory = mmap.mmap(-1, size)
        else:
            # Private, because a forked process would otherwise write into its parent's Docs.
            memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        # Linux allows a process 65,530 mappings.
        return xp.zeros(shape, dtype=dtype)
    return np.ndarray(shape, dtype, buffer=memory)


def mapped_copy(array: Any) -> Any:
    """Return a copy of an array, in memory from `mapped_zeros`. A slice would keep the whole array in memory."""
    copied = mapped_zeros(get_array_module(array), array.shape, array.dtype)
    copied[...] = array
    return copied

"""Arrays in anonymous memory maps, which return their memory to the system as soon as they are deleted."""

from __future__ import annotations

import math
import mmap
import sys
from typing import Any

import numpy as np
from thinc.api import get_array_module

# Smaller arrays would waste more in partly used pages than a memory map saves.
_LEAST_BYTES = 32 * 1024


def mapped_zeros(xp: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Return an array of zeros that, on the CPU and unless it is small, is not allocated from the heap.

    Layers are deleted long before their Docs, and the gaps that they leave between Docs in the heap would stay with
    the process: more memory than the Docs themselves need.

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
            # Private, because otherwise a forked process would write into its parent's Docs.
            memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        # Linux allows 65,530 mappings, and there may be as many gaps between mappings that were deleted.
        return xp.zeros(shape, dtype=dtype)
    return np.ndarray(shape, dtype, buffer=memory)


def mapped_copy(array: Any) -> Any:
    """Return a copy in memory of `mapped_zeros`. A slice would keep the whole array alive."""
    copied = mapped_zeros(get_array_module(array), array.shape, array.dtype)
    copied[...] = array
    return copied

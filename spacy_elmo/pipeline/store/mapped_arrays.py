"""Arrays in anonymous memory maps. Deleting one returns its memory to the system at once."""

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
    """Return an array of zeros. On the CPU, an array that is not small is allocated outside the heap.

    Layers are deleted long before their Docs. In the heap they would leave gaps between Docs, which the process could
    not return to the system. These gaps are larger than the Docs.

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
    """Return a copy, with memory from `mapped_zeros`. Use it for slices, which would keep the whole array alive."""
    copied = mapped_zeros(get_array_module(array), array.shape, array.dtype)
    copied[...] = array
    return copied

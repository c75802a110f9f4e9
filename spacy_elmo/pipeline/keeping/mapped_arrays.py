"""Arrays that stay on Docs for a while, in memory that goes back to the system with them."""

from __future__ import annotations

import math
import mmap
import sys
from typing import Any

import numpy as np
from thinc.api import get_array_module

# Below it, what is lost to whole pages would weigh more.
_LEAST_BYTES = 32 * 1024


def mapped_zeros(xp: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """An array of zeros that on the CPU does not come from the heap, unless it is small.

    Layers are dropped long before their Docs, and in a heap the gaps that they leave between Docs stay with the
    process: more memory than the Docs take themselves.

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
            # Private, or a forked process would write into its parent's Docs.
            memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        # Linux allows 65,530 mappings, and as many gaps may stand between Docs that were dropped.
        return xp.zeros(shape, dtype=dtype)
    return np.ndarray(shape, dtype, buffer=memory)


def mapped_copy(array: Any) -> Any:
    """A copy as of `mapped_zeros`. A slice would keep the whole array alive."""
    copied = mapped_zeros(get_array_module(array), array.shape, array.dtype)
    copied[...] = array
    return copied

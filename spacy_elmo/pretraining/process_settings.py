"""Settings of the process that trains: its memory, and the order in which torch adds."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from typing import Any

import torch

_deterministic: Any = torch.utils.deterministic
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


@contextlib.contextmanager
def reproducible(device: torch.device) -> Iterator[None]:
    """Create a context in which torch computes sums in a fixed order, so repeated runs give the same bits. The caller's
    settings and random state are restored at the end."""
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    fill = _deterministic.fill_uninitialized_memory
    # On a GPU, some operations have no deterministic algorithm, so torch should only warn.
    torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
    # Otherwise torch would also fill each new buffer with NaN, which takes time.
    _deterministic.fill_uninitialized_memory = False
    try:
        # Only for this device: otherwise torch would initialize every GPU of the machine and warn about it.
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        _deterministic.fill_uninitialized_memory = fill

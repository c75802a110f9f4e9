"""Reproducible computation: the same arithmetic and the same random numbers in every run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

_deterministic: Any = torch.utils.deterministic


@contextlib.contextmanager
def reproducible(device: torch.device) -> Iterator[None]:
    """Make torch add in a fixed order within the block, and restore its settings and random state afterwards, because a
    run may share the process with other work of its caller."""
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    fill = _deterministic.fill_uninitialized_memory
    # Some products have no deterministic algorithm on a GPU, so there it is a warning only.
    torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
    # It would write NaN into every buffer that is about to be overwritten.
    _deterministic.fill_uninitialized_memory = False
    try:
        # Of this device only: otherwise torch would initialize, and warn about, every GPU of the machine.
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        _deterministic.fill_uninitialized_memory = fill

"""The same arithmetic and the same draws every time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

_filling: Any = torch.utils.deterministic


@contextlib.contextmanager
def reproducible(device: torch.device) -> Iterator[None]:
    """Sums in a fixed order, and torch's own state as it was afterwards: a run lives among its caller's work."""
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    fill = _filling.fill_uninitialized_memory
    # A GPU cannot keep to it in all products; there a warning must do.
    torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
    # It would write NaN into every buffer that is about to be overwritten.
    _filling.fill_uninitialized_memory = False
    try:
        # Of this device only: torch would start up, and warn of, every GPU of the machine.
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        _filling.fill_uninitialized_memory = fill

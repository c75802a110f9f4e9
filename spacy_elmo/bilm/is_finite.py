"""Finiteness of all values of a tensor, without memory for a mask."""

import math

from torch import Tensor


def is_finite(tensor: Tensor) -> bool:
    """Return True if all values are finite. Any NaN is both extremes."""
    return not tensor.numel() or all(math.isfinite(extreme.item()) for extreme in tensor.aminmax())

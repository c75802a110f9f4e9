"""The strict check of a foreign model's arrays: none missing, none unexpected, each of the right shape and type."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import on_meta_device

Shape = tuple[int, ...]
_SHOWN = 50


def check_arrays(arrays: Mapping[str, np.ndarray], shapes: Mapping[str, Shape]) -> None:
    """Check that arrays have the expected names and shapes, the type float32 or float16, and finite values."""
    problems = [f"{name}: missing" for name in shapes.keys() - arrays.keys()]
    problems += [f"{name}: unexpected" for name in arrays.keys() - shapes.keys()]
    for name in shapes.keys() & arrays.keys():
        array = arrays[name]
        if array.shape != shapes[name]:
            problems.append(f"{name}: shape {list(array.shape)}, expected {list(shapes[name])}")
        elif array.dtype not in (np.float16, np.float32):
            problems.append(f"{name}: type {array.dtype}, expected float32 (or float16)")
        elif not np.isfinite(array).all():
            problems.append(f"{name}: contains values that are not finite")
    if problems:
        listing = sorted(problems)[:_SHOWN]
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        raise ValueError("the arrays do not fit the options:\n  " + "\n  ".join(listing + more))


def our_shapes(config: BiLMConfig) -> dict[str, Shape]:
    """Return {name: shape} for the tensors in `BiLM.state_dict()`, without allocating the tensors."""
    try:
        with on_meta_device():
            return {name: tuple(t.shape) for name, t in BiLM(config).state_dict().items()}
    except (RuntimeError, TypeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"the network is too large for any machine ({reason})") from error

"""The strict check of every conversion: exactly the tensors that the configuration requires, no more and no fewer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.tensors import on_meta_device

Shape = tuple[int, ...]


def check_depth(config: BiLMConfig, arrays: int) -> None:
    """Check the number of layers before a network is allocated, because a damaged file may claim a billion.

    Args:
        arrays: the number of arrays in the file.

    Raises:
        ValueError: the configuration has more layers than the file has arrays.
    """
    if config.layers + config.highways > arrays:
        raise ValueError(
            f"the options claim {config.layers} LSTM layers and {config.highways} highway layers, but the weights"
            f" have only {arrays} arrays"
        )


def our_shapes(config: BiLMConfig, arrays: int) -> dict[str, Shape]:
    """Return the shapes of `BiLM.state_dict()` without allocating the tensors.

    Args:
        arrays: the number of arrays in the file.

    Raises:
        ValueError: the configuration has more layers than the file has arrays, or sizes too large for any machine.
    """
    check_depth(config, arrays)
    try:
        with on_meta_device():
            return {name: tuple(t.shape) for name, t in BiLM(config).state_dict().items()}
    except (RuntimeError, TypeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"The sizes are too large for any machine ({reason})") from error


def mismatches(
    arrays: Mapping[str, np.ndarray], shapes: Mapping[str, Shape], dtype: torch.dtype
) -> list[str]:
    """Return a message for every array that is missing, unexpected, of wrong shape or type, or not finite, or whose
    values exceed the largest number of `dtype`, in which it will be stored."""
    largest = torch.finfo(dtype).max
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
        elif float(np.abs(array).max(initial=0)) > largest:
            problems.append(f"{name}: contains values beyond {largest:g}, the largest of {dtype}")
    return sorted(problems)

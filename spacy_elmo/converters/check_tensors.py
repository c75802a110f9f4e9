"""Check of the tensors of a foreign model: no tensor may be missing, unexpected or invalid."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.tensors import on_meta_device

Shape = tuple[int, ...]


def check_depth(config: BiLMConfig, arrays: int) -> None:
    """Check that the configuration does not have more layers than the weights file has arrays.

    Call this function before you allocate memory, because a damaged options file could specify a billion
    layers.

    Args:
        arrays: the number of arrays in the weights file.

    Raises:
        ValueError: the configuration has more layers than the file has arrays.
    """
    if config.layers + config.highways > arrays:
        raise ValueError(
            f"the options specify {config.layers} LSTM layers and {config.highways} highway layers, but the weights"
            f" contain only {arrays} arrays"
        )


def our_shapes(config: BiLMConfig, arrays: int) -> dict[str, Shape]:
    """Return {name: shape} for the tensors in `BiLM.state_dict()`, without allocating the tensors.

    Args:
        arrays: the number of arrays in the weights file that will be converted.

    Raises:
        ValueError: the configuration has more layers than the file has arrays, or the tensors are too large
            for any machine.
    """
    check_depth(config, arrays)
    try:
        with on_meta_device():
            return {name: tuple(t.shape) for name, t in BiLM(config).state_dict().items()}
    except (RuntimeError, TypeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"the sizes of the network are too large for any machine ({reason})"
        ) from error


def mismatches(
    arrays: Mapping[str, np.ndarray], shapes: Mapping[str, Shape], dtype: torch.dtype
) -> list[str]:
    """Return a message for each array that is missing, unexpected or invalid.

    A valid array has the expected shape, the type float16 or float32, and finite values in the range of
    `dtype`.

    Args:
        arrays: {name: array}.
        shapes: {name of an array: its expected shape}.
        dtype: data type of the converted tensors.
    """
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
            problems.append(f"{name}: contains values beyond the range of {dtype}, {largest:g}")
    return sorted(problems)

"""Safe reader of `.npy` files (NumPy's format) that contain an array of a known type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.lib import format as npy


def read_npy(path: Path, dtype: str, axes: int = 1, *, mapped: bool = False) -> np.ndarray:
    """Check the header of a `.npy` file, and read the array.

    The check is necessary, because NumPy would unpickle Python objects, and would crash when it memory-maps
    an array with a data type of 0 bytes.

    Args:
        dtype: expected data type of the array, such as "int32".
        axes: expected number of axes of the array.
        mapped: True: return a read-only memory map of the file. False: read the array into memory.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is damaged, or the array has another data type or number of axes. The message
            names the file.
    """
    with path.open("rb") as file:
        try:
            # NumPy always writes this version for these types. Later versions may have headers of 4 GB.
            if (version := npy.read_magic(file)) != (1, 0):
                raise ValueError(f"version {version}, expected (1, 0)")
            shape, by_columns, kind = npy.read_array_header_1_0(file)
        except Exception as error:  # a damaged header can raise an error of any class
            raise ValueError(f"{path} is damaged, or is not a .npy file ({error})") from error
        if kind != np.dtype(dtype) or len(shape) != axes or by_columns:
            raise ValueError(
                f"{path} must contain an array of {dtype} with {axes} axes, but contains {kind} {list(shape)}"
            )
        start, size = file.tell(), path.stat().st_size
        count = int(np.prod(shape, dtype=object)) if shape else 1
        if min(shape, default=0) < 0 or size - start != count * kind.itemsize:
            raise ValueError(
                f"{path} is damaged: an array of {dtype} {list(shape)} cannot have {size - start:,} bytes"
            )
        if mapped and count:
            return np.memmap(path, kind, "r", start, shape)
        return np.fromfile(file, kind, count).reshape(shape)

"""Files of NumPy's `.npy` format that contain an array of a known type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.lib import format as npy


def read_npy(path: Path, dtype: str, axes: int = 1, *, mapped: bool = False) -> np.ndarray:
    """Read an array.

    Its header is checked first: NumPy itself unpickles arrays of objects, and crashes when it maps an array whose
    numbers have no bytes.

    Args:
        dtype: the only number type that is accepted, such as "int32".
        axes: the number of axes.
        mapped: map the file into memory, read-only.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged, or contains another kind of array; the message names it.
    """
    with path.open("rb") as file:
        try:
            # NumPy writes no other version for these types, and later ones may claim headers of 4 GB.
            if (version := npy.read_magic(file)) != (1, 0):
                raise ValueError(f"version {version}, expected (1, 0)")
            shape, by_columns, kind = npy.read_array_header_1_0(file)
        except (
            Exception
        ) as error:  # the parser raises many classes, from SyntaxError to OverflowError
            raise ValueError(f"{path} is damaged, or is not a .npy file ({error})") from error
        if kind != np.dtype(dtype) or len(shape) != axes or by_columns:
            raise ValueError(
                f"{path}: expected an array of {dtype} with {axes} axes, but got {kind} {list(shape)}"
            )
        start, size = file.tell(), path.stat().st_size
        count = int(np.prod(shape, dtype=object)) if shape else 1
        if min(shape, default=0) < 0 or size - start != count * kind.itemsize:
            raise ValueError(
                f"{path}: {size - start:,} bytes for an array of {list(shape)} {dtype}"
            )
        if mapped and count:
            return np.memmap(path, kind, "r", start, shape)
        return np.fromfile(file, kind, count).reshape(shape)

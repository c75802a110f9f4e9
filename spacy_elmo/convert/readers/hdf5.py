"""HDF5 files: the arrays inside them, without sizes beyond the file and without references to other files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

# Chunks of an array may be compressed or missing, so a few bytes can claim a petabyte; weights hardly shrink.
_MAX_RATIO = 20
_SMALL_BYTES = 64 << 20


def load_h5py() -> Any:
    """Import h5py, which is only installed with an extra.

    Raises:
        ValueError: it is missing.
    """
    try:
        import h5py
    except ImportError as error:
        raise ValueError("HDF5 files need h5py: pip install spacy-elmo[h5]") from error
    return h5py


def shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array by its path inside the file, "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0".

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: it is damaged, or h5py is missing.
    """
    with _opened(path) as file:
        return {name: dataset.shape for name, dataset in _datasets(file).items()}


def read_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Read the arrays of these names, by default all.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: a name is missing; the file is damaged, claims more than it can contain, refers to another file,
            or contains anything but numbers; or h5py is missing.
    """
    size = path.stat().st_size
    allowed = max(_SMALL_BYTES, _MAX_RATIO * size)
    with _opened(path) as file:
        datasets = _datasets(file)
        if missing := [name for name in names or () if name not in datasets]:
            raise ValueError(
                f"{path}: no array {', '.join(missing)}; there is {', '.join(list(datasets)[:10])}"
            )
        arrays = {}
        for name in names or datasets:
            dataset = datasets[name]
            if dataset.external or dataset.is_virtual:
                raise ValueError(f"{path}: {name} refers to another file, which is not read")
            if dataset.dtype.kind not in "fiub":
                # Texts and lists are stored elsewhere in the file and can be shared, so their size is unknown.
                raise ValueError(f"{path}: {name} is of type {dataset.dtype}, expected numbers")
            allowed -= dataset.size * dataset.dtype.itemsize
            if allowed < 0:
                raise ValueError(
                    f"{path}: {name} claims the shape {list(dataset.shape)}, which a file of {size:,} bytes"
                    " cannot contain"
                )
            arrays[name] = np.asarray(dataset[()])
        return arrays


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    h5py = load_h5py()
    with path.open("rb"):
        pass  # a missing or unreadable file raises an OSError with its path
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        if str(error).startswith(f"{path}: "):  # raised inside the context, and complete
            raise
        raise ValueError(f"{path}: not a readable HDF5 file, or truncated ({error})") from error


def _datasets(file: Any) -> dict[str, Any]:
    datasets: dict[str, Any] = {}

    def keep(name: str | bytes, node: Any) -> None:
        if getattr(node, "shape", None) is not None:  # an array; the rest are groups and types
            # h5py passes bytes where a name is no UTF-8.
            text = name if isinstance(name, str) else name.decode("utf8", "backslashreplace")
            datasets[text] = node

    file.visititems(keep)
    return datasets

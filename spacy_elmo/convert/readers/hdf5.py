"""HDF5 files: the arrays in them, and nothing that they claim to hold or fetch from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

# Chunks of an array may be packed or missing, so that a few bytes claim a petabyte; weights hardly shrink.
_MAX_RATIO = 20
_SMALL_BYTES = 64 << 20


def load_h5py() -> Any:
    """The module, which is only installed with an extra.

    Raises:
        ValueError: it is missing.
    """
    try:
        import h5py
    except ImportError as error:
        raise ValueError("HDF5 files need h5py: pip install spacy-elmo[h5]") from error
    return h5py


def shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every array in the file, by the path inside it, "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0".

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: it is damaged, or h5py is missing.
    """
    with _opened(path) as file:
        return {name: dataset.shape for name, dataset in _datasets(file).items()}


def read_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of these names, by default all.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: a name is missing; the file is damaged, claims to hold more than it can, refers to another file,
            or holds something else than numbers; or h5py is missing.
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
                raise ValueError(f"{path}: {name} lies in another file, which is not read")
            if dataset.dtype.kind not in "fiub":
                # Texts and lists are kept elsewhere in the file, many times the same one: no size is known.
                raise ValueError(f"{path}: {name} is of type {dataset.dtype}, expected numbers")
            allowed -= dataset.size * dataset.dtype.itemsize
            if allowed < 0:
                raise ValueError(
                    f"{path}: {name} claims the shape {list(dataset.shape)}, which a file of {size:,} bytes"
                    " cannot hold"
                )
            arrays[name] = np.asarray(dataset[()])
        return arrays


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    h5py = load_h5py()
    with path.open("rb"):
        pass  # a plain OSError with the path for a missing or unreadable file
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        if str(error).startswith(f"{path}: "):  # ours, about what is in the file
            raise
        raise ValueError(f"{path}: not a readable HDF5 file, or truncated ({error})") from error


def _datasets(file: Any) -> dict[str, Any]:
    datasets: dict[str, Any] = {}

    def keep(name: str | bytes, node: Any) -> None:
        if getattr(node, "shape", None) is not None:  # an array; the rest are groups and types
            # h5py gives bytes where a name is no UTF-8.
            text = name if isinstance(name, str) else name.decode("utf8", "backslashreplace")
            datasets[text] = node

    file.visititems(keep)
    return datasets

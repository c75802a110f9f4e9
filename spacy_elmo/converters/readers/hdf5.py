"""HDF5 files: the arrays inside them, without sizes beyond the file and without references to other files."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...limits import MAX_DEPTH, MAX_MEMBERS, SMALL_BYTES, expanded_bytes
from .errors import one_error

# HDF5's numbers of the filters that may be applied to chunks, each once.
_DEFLATE, _SHUFFLE, _FLETCHER32 = 1, 2, 3
_CHECKSUM_BYTES = 4


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
    allowed = expanded_bytes(size)
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
            if dataset.chunks is not None and (problem := _chunk_problem(dataset, size)):
                raise ValueError(f"{path}: {name}: {problem}")
            arrays[name] = np.asarray(dataset[()])
        return arrays


def _chunk_problem(dataset: Any, file_size: int) -> str | None:
    """Return the reason why reading a chunked array could take more memory than the array, or None."""
    chunk = math.prod(dataset.chunks) * dataset.dtype.itemsize
    limit = max(SMALL_BYTES, dataset.size * dataset.dtype.itemsize)
    if chunk > limit:
        return f"chunks of {chunk:,} bytes, the limit is {limit:,}"
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]
    if set(filters) - {_DEFLATE, _SHUFFLE, _FLETCHER32} or len(set(filters)) < len(filters):
        return f"packed by the filters {filters} of HDF5; supported are gzip, shuffle and fletcher32, each once"
    stored: list[Any] = []
    dataset.id.chunk_iter(stored.append)
    if any(part.size > file_size for part in stored):
        return f"a chunk of {max(part.size for part in stored):,} bytes in a file of {file_size:,}"
    if _DEFLATE not in filters:
        return None
    for part in stored:
        # HDF5 would inflate a chunk to any size.
        content = dataset.id.read_direct_chunk(part.chunk_offset)[1]
        if len(zlib.decompressobj().decompress(content, limit + 1)) > chunk + _CHECKSUM_BYTES:
            return f"a packed chunk inflates to more than its {chunk:,} bytes"
    return None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    h5py = load_h5py()
    with path.open("rb"):
        pass  # a missing or unreadable file raises an OSError with its path
    with one_error(path, "a readable HDF5 file"), h5py.File(path, "r") as file:
        yield file


def _datasets(file: Any) -> dict[str, Any]:
    datasets: dict[str, Any] = {}
    members = 0

    def keep(name: str | bytes, node: Any) -> None:
        nonlocal members
        # h5py passes bytes where a name is no UTF-8.
        text = name if isinstance(name, str) else name.decode("utf8", "backslashreplace")
        members += 1
        if members > MAX_MEMBERS:
            raise ValueError(f"it has more than {MAX_MEMBERS:,} groups and arrays, the limit")
        if text.count("/") >= MAX_DEPTH:
            raise ValueError(f"groups nested deeper than {MAX_DEPTH} levels")
        if getattr(node, "shape", None) is not None:  # an array; the rest are groups and types
            datasets[text] = node

    file.visititems(keep)
    return datasets

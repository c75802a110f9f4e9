"""Safe reader of arrays in HDF5 files.

The reader refuses links to other files, and arrays that are much larger than the file.
"""

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

# Numbers of the HDF5 filters that are supported for chunks, each at most once.
_DEFLATE, _SHUFFLE, _FLETCHER32 = 1, 2, 3
_CHECKSUM_BYTES = 4


def load_h5py() -> Any:
    """Import h5py, an optional dependency, and return the module.

    Raises:
        ValueError: h5py is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        raise ValueError('HDF5 files need h5py: pip install "spacy-elmo[h5]"') from error
    return h5py


def shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return {path in the HDF5 file: shape} for all arrays. A path is, for example, "CNN_proj/W_proj".

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: the file is damaged, or h5py is missing.
    """
    with _opened(path) as file:
        return {name: dataset.shape for name, dataset in _datasets(file).items()}


def read_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Read arrays from an HDF5 file.

    Args:
        names: paths of the arrays in the file; None: read all arrays.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: h5py is missing, the file is damaged, or an array is missing.
        ValueError: an array is much larger than the file, refers to another file, or contains anything
            besides numbers.
    """
    size = path.stat().st_size
    allowed = expanded_bytes(size)
    with _opened(path) as file:
        datasets = _datasets(file)
        if missing := [name for name in names or () if name not in datasets]:
            raise ValueError(
                f"{path} has no array {', '.join(missing)}. Its first arrays are {', '.join(list(datasets)[:10])}"
            )
        arrays = {}
        for name in names or datasets:
            dataset = datasets[name]
            if dataset.external or dataset.is_virtual:
                raise ValueError(
                    f"{path}: the array {name} refers to another file, which is not supported"
                )
            if dataset.dtype.kind not in "fiub":
                # Texts and lists are stored elsewhere in the file and can be shared, so their size is unknown.
                raise ValueError(
                    f"{path}: the array {name} has the type {dataset.dtype}, expected numbers"
                )
            allowed -= dataset.size * dataset.dtype.itemsize
            if allowed < 0:
                raise ValueError(
                    f"{path}: the array {name} has the shape {list(dataset.shape)}, too large for a file of"
                    f" {size:,} bytes"
                )
            if dataset.chunks is not None and (problem := _chunk_problem(dataset, size)):
                raise ValueError(f"{path}: the array {name} has {problem}")
            arrays[name] = np.asarray(dataset[()])
        return arrays


def _chunk_problem(dataset: Any, file_size: int) -> str | None:
    """Return a reason why an array that is stored in chunks is not safe to read, or None. For a damaged
    chunk, HDF5 could need more memory than for the whole array."""
    chunk = math.prod(dataset.chunks) * dataset.dtype.itemsize
    limit = max(SMALL_BYTES, dataset.size * dataset.dtype.itemsize)
    if chunk > limit:
        return f"chunks of {chunk:,} bytes, the limit is {limit:,}"
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]
    if set(filters) - {_DEFLATE, _SHUFFLE, _FLETCHER32} or len(set(filters)) < len(filters):
        return f"the HDF5 filters {filters}; supported are gzip, shuffle and fletcher32, each at most once"
    stored: list[Any] = []
    dataset.id.chunk_iter(stored.append)
    if any(part.size > file_size for part in stored):
        return f"a chunk of {max(part.size for part in stored):,} bytes in a file of {file_size:,}"
    if _DEFLATE not in filters:
        return None
    for part in stored:
        # HDF5 itself would expand a chunk to any size.
        content = dataset.id.read_direct_chunk(part.chunk_offset)[1]
        if len(zlib.decompressobj().decompress(content, limit + 1)) > chunk + _CHECKSUM_BYTES:
            return f"a compressed chunk that expands to more than its {chunk:,} bytes"
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
        # h5py passes bytes if a name is not UTF-8.
        text = name if isinstance(name, str) else name.decode("utf8", "backslashreplace")
        members += 1
        if members > MAX_MEMBERS:
            raise ValueError(f"it has more than {MAX_MEMBERS:,} groups and arrays, the limit")
        if text.count("/") >= MAX_DEPTH:
            raise ValueError(f"it has groups nested deeper than {MAX_DEPTH} levels, the limit")
        if getattr(node, "shape", None) is not None:  # an array, not a group or a type
            datasets[text] = node

    file.visititems(keep)
    return datasets

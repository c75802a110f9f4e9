"""Check of the sizes that are declared in `torch.save` files of PyTorch before 1.6.

Such a file consists of five pickles (magic number, protocol, system, content, names of the storages),
followed by the values of the storages (the memory of the tensors). When PyTorch loads the fourth pickle, it
allocates all storages before it reads any value. If a tensor is larger than its storage, PyTorch enlarges the
storage. So a small damaged file could fill the memory.
"""

from __future__ import annotations

import mmap
import pickle
import pickletools
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

_PICKLES, _CONTENT = 5, 3
_MEMO = ("PUT", "BINPUT", "LONG_BINPUT")
_NOT_WRITTEN = ("BYTEARRAY8", "NEXT_BUFFER", "READONLY_BUFFER")
"""Pickle opcodes that allocate as many bytes as the file declares. PyTorch never writes these opcodes."""
_TENSORS = {"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_qtensor"}
"""Functions of `torch._utils` that create a tensor from a storage, an offset, a size and strides."""


def check_storages(path: Path) -> None:
    """Check that no storage in a file is larger than the file, and that no tensor is larger than its storage.

    Raises:
        OSError: the file cannot be read.
        ValueError: a storage or tensor is too large, or a pickle has opcodes that PyTorch never writes.
        Exception: a pickle is damaged. The parser can raise an error of any class.
    """
    size = path.stat().st_size
    # Map the file, because `read` would allocate as many bytes as a damaged string claims to have.
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        ends = [_end_of_pickle(data, size) for _ in range(_PICKLES)]
        data.seek(ends[_CONTENT - 1])
        reader = _StorageReader(data)
        reader.load()
    # Each number has at least one byte.
    if (numbers := sum(reader.sizes.values())) > size:
        raise ValueError(
            f"{path} is damaged: it claims to contain {numbers:,} numbers, but has only {size:,} bytes"
        )


def _end_of_pickle(data: mmap.mmap, size: int) -> int:
    """Skip a pickle, and return the position of the first byte after it.

    Raises:
        ValueError: Python could allocate more bytes for the pickle than the size of the file.
    """
    for opcode, argument, _ in pickletools.genops(cast("IO[bytes]", data)):
        if opcode.name in _NOT_WRITTEN or (opcode.name in _MEMO and int(argument or 0) > size):
            raise ValueError(
                f"it contains a pickle with {opcode.name} {argument}, which PyTorch never writes"
            )
    return data.tell()


class _Anything:
    """Stand-in for every class and function in a pickle, because no code of the pickle may be executed."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __setitem__(self, *_: Any) -> None: ...

    def append(self, *_: Any) -> None: ...

    def extend(self, *_: Any) -> None: ...

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple):  # only tensors have a tuple
            _check_tensor(*state)


def _check_tensor(
    storage: int, offset: int, shape: Sequence[int], strides: Sequence[int], *_: Any
) -> _Anything:
    """Check that a tensor does not exceed its storage.

    The arguments are the same as in PyTorch's functions `_TENSORS`, which this function replaces.

    Args:
        storage: number of values in the storage.

    Raises:
        ValueError: the tensor exceeds its storage.
    """
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if 0 not in shape and not 0 <= offset <= last < storage:
        raise ValueError(
            f"a tensor of shape {list(shape)} and strides {list(strides)} exceeds its storage of {storage:,} numbers"
        )
    return _Anything()


class _StorageReader(pickle.Unpickler):
    """Unpickler for the fourth pickle of a file (the content). It records the number of values in each
    storage, and checks that each tensor fits into its storage."""

    def __init__(self, data: mmap.mmap) -> None:
        super().__init__(data)
        self.sizes: dict[Any, int] = {}

    def find_class(self, module: str, name: str, /) -> Any:
        if name == "_rebuild_from_type_v2":  # calls another function
            return lambda function, _, arguments, *__: function(*arguments)
        return _check_tensor if name in _TENSORS else _Anything

    def persistent_load(self, identity: Any, /) -> Any:
        if identity[0] != "storage":  # a whole module, which PyTorch refuses
            return _Anything
        _, _, key, _, size, *view = identity
        self.sizes[key] = max(size, self.sizes.get(key, 0))
        # PyTorch 0.4 and earlier wrote views: a name, an offset and a size.
        return view[0][2] if view and view[0] else size

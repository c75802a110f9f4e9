"""Files of `torch.save` before PyTorch 1.6: the sizes of their storages and tensors, without loading them.

Such a file is five pickles (magic number, protocol, system, content, names of the storages) and the numbers. PyTorch
allocates every storage that the fourth names before it reads any number, and enlarges it if a tensor claims more of it.
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
"""Opcodes that allocate whatever size they name, and that PyTorch never writes."""
_TENSORS = {"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_qtensor"}
"""Functions of `torch._utils` that make a tensor of a storage, an offset, a size and strides."""


def check_storages(path: Path) -> None:
    """Check that the storages of a file are not larger than the file, and its tensors no larger than their storages.

    Raises:
        OSError: the file cannot be read.
        ValueError: they are; or a pickle is of a kind that PyTorch does not write. The parser of pickles raises other
            errors for damaged ones.
    """
    size = path.stat().st_size
    # Mapped, because `read` of a file allocates as many bytes as a damaged text claims to have.
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        ends = [_end_of_pickle(data, size) for _ in range(_PICKLES)]
        data.seek(ends[_CONTENT - 1])
        reader = _StorageReader(data)
        reader.load()
    # At least a byte for each number.
    if (numbers := sum(reader.sizes.values())) > size:
        raise ValueError(f"{path}: {numbers:,} numbers in a file of {size:,} bytes")


def _end_of_pickle(data: mmap.mmap, size: int) -> int:
    """Return the position after the next pickle, in which nothing makes Python's reader allocate more than the file.

    Raises:
        ValueError: something does.
    """
    for opcode, argument, _ in pickletools.genops(cast("IO[bytes]", data)):
        if opcode.name in _NOT_WRITTEN or (opcode.name in _MEMO and int(argument or 0) > size):
            raise ValueError(f"{opcode.name} {argument} in a pickle, which PyTorch does not write")
    return data.tell()


class _Anything:
    """Stand-in for every class and function that a pickle names: none of them is executed."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __setitem__(self, *_: Any) -> None: ...

    def append(self, *_: Any) -> None: ...

    def extend(self, *_: Any) -> None: ...

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple):  # of a tensor; others have dictionaries
            _check_tensor(*state)


def _check_tensor(
    storage: int, offset: int, shape: Sequence[int], strides: Sequence[int], *_: Any
) -> _Anything:
    """Check that a tensor lies in its storage, of `storage` numbers; the arguments are those of PyTorch's functions.

    Raises:
        ValueError: it does not.
    """
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if 0 not in shape and not 0 <= offset <= last < storage:
        raise ValueError(
            f"a tensor of shape {list(shape)} and strides {list(strides)} in a storage of {storage:,} numbers"
        )
    return _Anything()


class _StorageReader(pickle.Unpickler):
    """A reader of the fourth pickle, the content, that keeps the length of each storage and checks its tensors."""

    def __init__(self, data: mmap.mmap) -> None:
        super().__init__(data)
        self.sizes: dict[Any, int] = {}

    def find_class(self, module: str, name: str, /) -> Any:
        if name == "_rebuild_from_type_v2":  # calls one of the others
            return lambda function, _, arguments, *__: function(*arguments)
        return _check_tensor if name in _TENSORS else _Anything

    def persistent_load(self, identity: Any, /) -> Any:
        if identity[0] != "storage":  # of a whole module, which PyTorch refuses
            return _Anything
        _, _, key, _, size, *view = identity
        self.sizes[key] = max(size, self.sizes.get(key, 0))
        # PyTorch 0.4 and earlier wrote views: a name, an offset and a size.
        return view[0][2] if view and view[0] else size

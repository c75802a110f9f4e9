"""Files of `torch.save` before PyTorch 1.6: the sizes of their storages, without loading them.

Such a file is five pickles (magic number, protocol, system, content, names of the storages) and the numbers. PyTorch
allocates every storage that the fourth names before it reads any number.
"""

from __future__ import annotations

import mmap
import pickle
import pickletools
from pathlib import Path
from typing import IO, Any, cast

_PICKLES, _CONTENT = 5, 3
_MEMO = ("PUT", "BINPUT", "LONG_BINPUT")
_NOT_WRITTEN = ("BYTEARRAY8", "NEXT_BUFFER", "READONLY_BUFFER")
"""Opcodes that allocate whatever size they name, and that PyTorch never writes."""


def check_storages(path: Path) -> None:
    """Check that the storages of a file are not larger than the file.

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
    """Stand-in for every class and function that a pickle names: nothing of them is executed."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __setitem__(self, *_: Any) -> None: ...

    def append(self, *_: Any) -> None: ...

    def extend(self, *_: Any) -> None: ...

    def __setstate__(self, _: Any) -> None: ...


class _StorageReader(pickle.Unpickler):
    """A reader of the fourth pickle that keeps the number of numbers of each storage."""

    def __init__(self, data: mmap.mmap) -> None:
        super().__init__(data)
        self.sizes: dict[Any, int] = {}

    def find_class(self, module: str, name: str, /) -> Any:
        return _Anything

    def persistent_load(self, identity: Any, /) -> type[_Anything]:
        if identity[0] == "storage":  # the others, of whole modules, PyTorch refuses
            _, _, key, _, size, *_ = identity
            self.sizes[key] = max(size, self.sizes.get(key, 0))
        return _Anything

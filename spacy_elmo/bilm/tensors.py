"""Functions that use little memory to declare, read and check the tensors of large networks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_DTYPE_NAMES = {
    "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "U8": torch.uint8,
}  # fmt: skip
"""Mapping from the names of data types in the header of a weights file to torch's data types."""


@contextmanager
def on_meta_device() -> Iterator[None]:
    """Create a context in which new modules get no memory for their parameters and draw no random numbers."""
    with torch.device("meta"), _SkipInitialization():
        yield


class _SkipInitialization(TorchFunctionMode):
    """Context in which torch's functions that initialize parameters do nothing.

    Parameters on the meta device have no values to initialize. Some of torch's functions would nevertheless
    import torch's whole compiler (800 modules, 2 seconds).
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) in ("torch.nn.init", "torch.nn.functional"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def read_tensors(file: BufferedReader, layout: Any) -> dict[str, Tensor]:
    """Read the tensors of a weights file into new memory, which later changes of the file do not affect.

    safetensors would return views of the memory-mapped file. Copies of these views would double the memory,
    because the mapped file would be in memory as well.

    Args:
        file: the weights file, positioned at its start.
        layout: the same file, opened by safetensors, which has already validated the header.

    Raises:
        EOFError: the file has become shorter since safetensors opened it.
    """
    tensors = {}
    size = int.from_bytes(file.read(8), "little")
    entries = json.loads(file.read(size))
    entries.pop("__metadata__", None)
    for name, entry in entries.items():
        # `empty_like(layout.get_tensor(name))` would be simpler, but is slower than reading a small tensor.
        dtype = _DTYPE_NAMES.get(entry["dtype"]) or layout.get_tensor(name).dtype
        tensors[name] = torch.empty(entry["shape"], dtype=dtype, device="cpu")
        file.seek(8 + size + entry["data_offsets"][0])
        content = bytes_of(tensors[name])
        if file.readinto(content) < len(content):
            raise EOFError("a tensor ends too early")
    return tensors


def bytes_of(tensor: Tensor) -> memoryview:
    """Return the bytes of a contiguous CPU tensor, as a memoryview that shares the memory of the tensor."""
    return tensor.view(-1).view(torch.uint8).numpy().data


def is_finite(tensor: Tensor) -> bool:
    """Return True if no value of the tensor is NaN or infinite. Only the minimum and maximum are checked,
    because both are NaN if any value is NaN."""
    return not tensor.numel() or all(math.isfinite(extreme.item()) for extreme in tensor.aminmax())

"""Tensors of large networks without memory that nobody needs: declared without values, read into place, and checked
without a mask."""

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
"""The types that a weights file contains, by their names in its header."""


@contextmanager
def on_meta_device() -> Iterator[None]:
    """Build modules inside this context without memory for their parameters and without drawing random numbers."""
    with torch.device("meta"), _SkipInitialization():
        yield


class _SkipInitialization(TorchFunctionMode):
    """Mode in which the functions that initialize parameters do nothing.

    On the meta device there is nothing to write, and for some of these functions torch would import its whole compiler
    to find that out: 800 modules, 2 seconds.
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
    """Read the tensors into memory of their own, so that later changes of the file do not affect them.

    The tensors of safetensors are views of the mapped file, and copying them would take the memory of the file twice.

    Args:
        file: positioned at its start.
        layout: the same file opened by safetensors, which has validated its header.

    Raises:
        EOFError: the file has become shorter since.
    """
    tensors = {}
    size = int.from_bytes(file.read(8), "little")
    entries = json.loads(file.read(size))
    entries.pop("__metadata__", None)
    for name, entry in entries.items():
        # Not `empty_like(get_tensor(...))` alone: a view of the file takes longer than reading a small tensor.
        dtype = _DTYPE_NAMES.get(entry["dtype"]) or layout.get_tensor(name).dtype
        tensors[name] = torch.empty(entry["shape"], dtype=dtype)
        file.seek(8 + size + entry["data_offsets"][0])
        content = bytes_of(tensors[name])
        if file.readinto(content) < len(content):
            raise EOFError("a tensor ends too early")
    return tensors


def bytes_of(tensor: Tensor) -> memoryview:
    """Return the bytes of a contiguous tensor on the CPU, which share its memory."""
    return tensor.view(-1).view(torch.uint8).numpy().data


def is_finite(tensor: Tensor) -> bool:
    """Return True if all values are finite. Any NaN is both extremes."""
    return not tensor.numel() or all(math.isfinite(extreme.item()) for extreme in tensor.aminmax())

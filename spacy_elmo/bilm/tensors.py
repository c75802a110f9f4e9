"""Functions that use little memory to declare and check the tensors of large networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


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


def is_finite(tensor: Tensor) -> bool:
    """Return True if no value of the tensor is NaN or infinite. Only the minimum and maximum are checked,
    because both are NaN if any value is NaN."""
    return not tensor.numel() or all(math.isfinite(extreme.item()) for extreme in tensor.aminmax())

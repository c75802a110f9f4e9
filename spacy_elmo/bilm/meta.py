"""Networks without numbers: the names and shapes of their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


@contextmanager
def shells() -> Iterator[None]:
    """Modules that are built inside have parameters of a shape, but no memory, and draw no random numbers."""
    with torch.device("meta"), _Undrawn():
        yield


class _Undrawn(TorchFunctionMode):
    """Leaves out what gives parameters their first values. Without memory there is nothing to write, and for some of
    these functions torch would load its whole compiler to find that out: 800 modules, 2 seconds."""

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

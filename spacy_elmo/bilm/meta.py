"""Networks on torch's meta device: parameters with names and shapes, but without values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


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

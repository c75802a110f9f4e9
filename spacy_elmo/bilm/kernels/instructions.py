"""Check whether a processor or a GPU has instructions to multiply numbers in bfloat16."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import torch

_OF_CPU = ("avx512_bf16", "amx_bf16", "bf16")
"""The CPU instructions that multiply bfloat16 numbers, as torch names them. `bf16` is for ARM processors, the
others are for x86."""


def has_bfloat16(device: torch.device) -> bool | None:
    """Return True if `device` has instructions to multiply bfloat16 numbers. Return False if it must emulate
    these instructions, which is much slower than float32, and None if this version of torch cannot tell."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return None
    capabilities: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    said = [bool(capabilities[name]) for name in _OF_CPU if name in capabilities]
    return any(said) if said else None


def warn_if_emulated(device: torch.device) -> None:
    """Warn if `device` is a CPU without instructions to multiply bfloat16 numbers."""
    if device.type == "cpu" and has_bfloat16(device) is False:
        warnings.warn(
            'precision = "bfloat16" may be much slower than "float32" here, because this processor has no'
            ' instructions for it. Set precision = "float32" in the config',
            stacklevel=3,
        )

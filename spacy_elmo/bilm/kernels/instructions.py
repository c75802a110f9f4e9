"""Checks whether a processor or a GPU has instructions to multiply numbers of a data type, such as int8."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import torch

from ..matmul_precision import Precision

_OF_CPU = {
    "bfloat16": ("avx512_bf16", "amx_bf16", "bf16"),
    "int8": ("avx512_vnni", "avx_vnni", "amx_int8"),
}
"""For each data type, the CPU instructions that multiply numbers of this type, as torch names them. `bf16` is
for ARM processors, the other instructions are for x86."""


def has_instructions(precision: Precision, device: torch.device) -> bool | None:
    """Return True if `device` has instructions to multiply numbers of the data type `precision`. Return False
    if the device must emulate these instructions, and None if this version of torch cannot tell.

    Every device has instructions for float32. Emulation of another data type is much slower than float32.
    """
    if device.type == "cuda":
        return precision != "bfloat16" or torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu" or precision not in _OF_CPU:
        return True
    capabilities: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    said = [bool(capabilities[name]) for name in _OF_CPU[precision] if name in capabilities]
    return any(said) if said else None


def warn_if_emulated(precision: Precision, device: torch.device) -> None:
    """Warn if `device` is a CPU without instructions to multiply numbers of the data type `precision`,
    because emulation is slow."""
    if device.type == "cpu" and has_instructions(precision, device) is False:
        warnings.warn(
            f'precision = "{precision}" may be much slower than "float32" here, because this processor has no'
            ' instructions for it. Set precision = "float32" in the config',
            stacklevel=3,
        )

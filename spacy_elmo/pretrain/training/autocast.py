"""Number type of the matrix products of a training run."""

from __future__ import annotations

import torch

from ...bilm.kernels.instructions import has_instructions


def autocast_dtype(setting: str, device: torch.device) -> str:
    """Return `"float32"` or `"bfloat16"`: the setting itself, or the faster type on this machine for `"auto"`.

    The faster one is bfloat16 where there are instructions for it, AVX512_BF16 or AMX on x86, BF16 on ARM, NVIDIA GPUs
    since Ampere, and float32 elsewhere.
    """
    if setting != "auto":
        return setting
    return "bfloat16" if has_instructions("bfloat16", device) else "float32"

"""Which type the matrix products of a training run are computed in."""

from __future__ import annotations

from collections.abc import Mapping

import torch


def precision(setting: str, device: torch.device) -> str:
    """`"float32"` or `"bfloat16"`: the setting itself, or what `"auto"` means on this machine.

    bfloat16 is right everywhere, and faster only with instructions for it: AVX512_BF16 or AMX on x86, BF16 on ARM,
    NVIDIA's since Ampere. Elsewhere it is emulated, which is slower than float32.
    """
    if setting != "auto":
        return setting
    return "bfloat16" if _multiplies_bfloat16(device) else "float32"


def _multiplies_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # Older versions of torch cannot say what a processor has.
    known: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(known.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))

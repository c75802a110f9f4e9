"""Number type of the matrix products of a training run."""

from __future__ import annotations

from collections.abc import Mapping

import torch


def autocast_dtype(setting: str, device: torch.device) -> str:
    """Return `"float32"` or `"bfloat16"`: the setting itself, or the faster type on this machine for `"auto"`.

    bfloat16 works everywhere, but is faster only with instructions for it: AVX512_BF16 or AMX on x86, BF16 on ARM,
    NVIDIA GPUs since Ampere. Elsewhere it is emulated, which is slower than float32.
    """
    if setting != "auto":
        return setting
    return "bfloat16" if _has_bfloat16_instructions(device) else "float32"


def _has_bfloat16_instructions(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # Older versions of torch do not report the instructions of a processor.
    capabilities: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))

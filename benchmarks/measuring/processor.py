"""Name and instructions of the processor that a benchmark runs on. Linux only, because they are read from /proc."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_INSTRUCTIONS = {
    "avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "avx_vnni", "amx_tile", "amx_bf16", "amx_int8", "avx10", "asimd", "bf16", "i8mm", "sve",
}  # fmt: skip


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> dict[str, Any]:
    """Return the name, the family and model numbers (x86) and the instructions of the first core."""
    first_core = cpuinfo.read_text("utf8").split("\n\n")[0]
    entries = dict(re.findall(r"^(.+?)\s*: (.*)$", first_core, re.MULTILINE))
    flags = entries.get("flags", entries.get("Features", "")).split()
    return {
        "name": entries.get("model name", "unknown"),
        "family": entries.get("cpu family"),
        "model": entries.get("model"),
        "instructions": sorted(_INSTRUCTIONS.intersection(flags)),
    }


def file_name(processor: dict[str, Any]) -> str:
    """Return a name for files about a processor. It has family and model, because processors may have equal names."""
    parts = [processor[part] for part in ("name", "family", "model") if processor[part]]
    return re.sub(r"[^a-z0-9]+", "-", " ".join(parts).lower()).strip("-")

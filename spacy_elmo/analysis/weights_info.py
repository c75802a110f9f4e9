"""Summary of a weights file for its users."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ..bilm.weights import Weights

_HEAD = "head"


def weights_info(path: str | Path) -> dict[str, Any]:
    """Return the sizes, the origin and the checksum of a weights file, in JSON types.

    Returns:
        `file`, `bytes`, `sha256`; `layers` and `width` of `doc._.elmo_layers`; `dtype`, the number types of the tensors
        in the file; `parameters`, their number in the biLM; `tensors`, the numbers of parameters by group; `head`, true
        if the file has one; the sizes of the `vocabulary` (of the head or of a word table) and of the `alphabet` (of
        characters); `config`; `card`.

    Raises:
        OSError, ValueError: see `Weights.read`.
    """
    path = Path(path)
    weights = Weights.read(path)
    groups: dict[str, int] = {}
    for name, tensor in sorted(weights.tensors.items()):
        parts = name.split(".")
        group = _HEAD if parts[0] == _HEAD else ".".join(parts[:2])
        groups[group] = groups.get(group, 0) + tensor.numel()
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "sha256": _sha256(path),
        "layers": weights.config.layers + 1,
        "width": weights.config.width,
        "dtype": sorted({str(t.dtype).removeprefix("torch.") for t in weights.tensors.values()}),
        "parameters": sum(number for group, number in groups.items() if group != _HEAD),
        "tensors": groups,
        "head": _HEAD in groups,
        "vocabulary": len(weights.vocabulary),
        "alphabet": len(weights.alphabet),
        "config": weights.config.to_dict(),
        "card": weights.card,
    }


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()

"""What a weights file holds, in the words of those who use it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ..bilm.weights import Weights

_HEAD = "head"


def weights_info(path: str | Path) -> dict[str, Any]:
    """Sizes, origin and checksum of a weights file, in JSON types.

    Returns:
        `file`, `bytes`, `sha256`; `layers` and `width`, of `doc._.elmo_layers`; `dtype`, of the tensors in the file;
        `parameters`, of the biLM; `tensors`, parameters by group; `head`, whether there is one; how many words the
        `vocabulary` has, which is that of the head or of a word table, and how many characters the `alphabet`;
        `config`; `card`.

    Raises:
        OSError, ValueError: as of `Weights.read`.
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

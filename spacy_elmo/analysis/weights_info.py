"""Summary of a weights file for its users."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ..bilm.weights import Weights
from ..digest import file_digest


def weights_info(path: str | Path) -> dict[str, Any]:
    """Return the name, size and checksum of a weights file, and the summary of its content, in JSON types.

    Returns:
        `file`, `bytes`, `sha256`; and everything of `Weights.info`.

    Raises:
        OSError, ValueError: see `Weights.load`.
    """
    path = Path(path)
    weights = Weights.load(path)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "sha256": file_digest(path, hashlib.sha256()),
        **weights.info(),
    }

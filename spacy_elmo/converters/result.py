"""The result of every conversion, of whichever format."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..bilm.weights import Weights


@dataclass
class Conversion:
    """A converted model, with remarks for the user on how its files were understood."""

    weights: Weights
    files: list[Path]
    """The files that were read."""
    notes: list[str] = field(default_factory=list)

"""What every conversion gives, whatever it read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..bilm.weights import Weights


@dataclass
class Conversion:
    """A converted model, and what a user should know of how its files were understood."""

    weights: Weights
    files: list[Path]
    """Those that were read."""
    notes: list[str] = field(default_factory=list)

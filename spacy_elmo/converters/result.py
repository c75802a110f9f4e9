"""Result of a conversion from a foreign format."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..bilm.weights import Weights


@dataclass
class Conversion:
    """A converted model, the files that were read, and notes for the user."""

    weights: Weights
    files: list[Path]
    """The files that were read."""
    notes: list[str] = field(default_factory=list)
    """Notes for the user on the interpretation of the files."""

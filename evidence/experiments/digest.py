"""A short name for a piece of a config."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest(block: Mapping[str, Any]) -> str:
    """Equal ones have the same, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(block, sort_keys=True).encode()).hexdigest()[:16]

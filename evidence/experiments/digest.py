"""The digest of a part of a config."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest(block: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that are equal for equal blocks, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(block, sort_keys=True).encode()).hexdigest()[:16]

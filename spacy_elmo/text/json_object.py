"""Reader of JSON files that contain one object, such as the settings of a search index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json_object(path: Path) -> dict[str, Any]:
    """Read a JSON file that contains one object.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not JSON, is nested too deeply, or contains no object. The message names the
            file.
    """
    try:
        value = json.loads(path.read_text(encoding="utf8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must contain a JSON object, but contains {value!r:.100}")
    return value

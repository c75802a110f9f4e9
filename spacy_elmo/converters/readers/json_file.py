"""JSON files of other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import one_error


def read_json(path: Path) -> Any:
    """Return the content of a JSON file.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: it is no JSON.
    """
    with one_error(path, "a JSON file"):
        return json.loads(path.read_text("utf8"))


def read_object(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file that must be an object.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: it is no JSON, or not an object.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path}: a JSON {type(content).__name__}, expected an object")
    return content

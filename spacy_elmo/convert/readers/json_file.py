"""JSON files of other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: it is no JSON.
    """
    try:
        return json.loads(path.read_text("utf8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a JSON file ({error})") from error


def read_object(path: Path) -> dict[str, Any]:
    """What a JSON file holds, if that is an object.

    Raises:
        OSError, ValueError: as of `read_json`; or it is something else.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path}: a JSON {type(content).__name__}, expected an object")
    return content

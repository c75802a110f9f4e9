"""Config files of pretraining runs, and settings from Python, before their values are checked."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confection import Config


def with_text_paths(value: Any) -> Any:
    """Return a setting, or mappings of settings as dicts, with paths as strings."""
    if isinstance(value, Mapping):
        return {name: with_text_paths(part) for name, part in value.items()}
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def with_pairs(settings: Any, name: str = "replace") -> Any:
    """Return settings, such as those of `[model]`, with the mapping `name` as a list of pairs. A config file would
    store the mapping as a section, in which the letters "#" and ";" begin a comment, and "=" and ":" end a name."""
    if isinstance(settings, Mapping) and isinstance(settings.get(name), Mapping):
        return {**settings, name: [list(pair) for pair in settings[name].items()]}
    return settings


def check_names(section: Mapping[str, Any], place: str = "") -> None:
    """Check that a config file can store the names in a section and in the mappings in it.

    Raises:
        ValueError: a name contains "=" or ":", begins with "#" or ";", or contains "." and is the name of a
            mapping.
    """
    for name, value in section.items():
        signs = r"[=:.\n]|^[#;]" if isinstance(value, Mapping) else r"[=:\n]|^[#;]"
        if place and re.search(signs, str(name)):
            raise ValueError(
                f"[{place}] has the name {name!r}, but a name in a config file has no '=' or ':' (a section also no"
                " '.'), and does not begin with '#' or ';'. Use a list instead of a mapping"
            )
        if isinstance(value, Mapping):
            check_names(value, f"{place}.{name}" if place else name)


def parsed(path: Path) -> Config:
    """Parse a config file without replacing its variables.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file cannot be parsed.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no config file {path}. `python -m spacy elmo init-config --list` lists the shipped configs"
        )
    try:
        return Config().from_disk(path, interpolate=False)
    except (configparser.Error, ValueError) as error:
        # The parser does not know the name of the file and calls it "<string>".
        message = str(error).strip().replace("<string>", path.name)
        raise ValueError(f"{path} is not a valid config file: {message}") from error

"""Reader of other programs' options. It collects messages about missing, invalid and unknown options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from ...limits import MAX_CLIP


class OptionsReader:
    """Reader of nested options. An option is named by a path with dots, such as `lstm.dim`."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(_flat(options))
        self._read: set[str] = set()
        self.problems: list[str] = []
        """Messages about missing and invalid options."""
        self.notes: list[str] = []
        """Notes for the user on missing options and their default values."""

    def value(self, path: str, *, default: Any = ..., silent: bool = False) -> Any:
        """Return the value of an option, or `default` if the option is missing or null.

        If there is no default, a missing option adds a message to `problems`.

        Args:
            default: value of a missing option.
            silent: do not add a message to `notes` when the default is used.
        """
        self._read.add(path)
        value = self._options.get(path)
        if value is not None:
            return value
        if default is ...:
            self.problems.append(f"{path} is missing")
        elif path not in self._options and not silent:
            self.notes.append(f"{path} is missing: assumed {default}")
        return default

    def whole(self, path: str, *, default: Any = ...) -> int:
        """Return the value of an option that must be a whole number. For any other value, add a message to
        `problems`."""
        value = self.value(path, default=default)
        if type(value) is int:
            return value
        if value is not ...:
            self.problems.append(f"{path} = {value!r:.60} (must be a whole number)")
        return 0

    def clip(self, path: str) -> float | None:
        """Return the value of a clipping option, a positive number.

        Return None (no clipping) if the option is missing, null, 0 or false. For an invalid value, add a
        message to `problems`.
        """
        value = self.value(path, default=None) or None
        if value is None:
            return None
        if isinstance(value, int | float) and 0 < value <= MAX_CLIP:
            return float(value)
        self.problems.append(
            f"{path} = {value!r:.30} (must be a positive number up to {MAX_CLIP:,}, or null for no clip)"
        )
        return None

    def ignored(self, known: Set[str]) -> list[str]:
        """Return a list with one note that names all unknown options, that is, options that were not read.
        The list is empty if there are none.

        Args:
            known: other options that the note should not name, because they do not change any vector.
        """
        unknown = sorted(self._options.keys() - self._read - known)
        unknown = [
            path for path in unknown if not any(r.startswith(f"{path}.") for r in self._read)
        ]
        return [f"ignored unknown options: {', '.join(unknown)}"] if unknown else []


def _flat(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    sections = [("", options)]
    while sections:  # no recursion, because a file may be nested deeper than Python's stack
        prefix, section = sections.pop()
        for key, value in section.items():
            yield prefix + key, value
            if isinstance(value, Mapping):
                sections.append((f"{prefix}{key}.", value))

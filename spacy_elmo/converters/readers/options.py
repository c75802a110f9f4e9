"""A reader of other programs' options that keeps lists of the missing, impossible, assumed and ignored ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from ...limits import MAX_CLIP


class OptionsReader:
    """A reader of options by their dotted path, with the problems and the assumptions so far."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(_flat(options))
        self._read: set[str] = set()
        self.problems: list[str] = []
        self.notes: list[str] = []

    def value(self, path: str, *, default: Any = ..., silent: bool = False) -> Any:
        """Return an option, or its default where it is missing or null; without a default, that is a problem."""
        self._read.add(path)
        value = self._options.get(path)
        if value is not None:
            return value
        if default is ...:
            self.problems.append(f"{path} is missing")
        elif path not in self._options and not silent:
            self.notes.append(f"no {path}: {default}")
        return default

    def whole(self, path: str, *, default: Any = ...) -> int:
        """Return an option that must be a whole number."""
        value = self.value(path, default=default)
        if type(value) is int:
            return value
        if value is not ...:
            self.problems.append(f"{path} = {value!r:.60} (must be a whole number)")
        return 0

    def clip(self, path: str) -> float | None:
        """Return an option that must be a positive number; 0, null and false switch a clip off."""
        value = self.value(path, default=None) or None
        if value is None:
            return None
        if isinstance(value, int | float) and 0 < value <= MAX_CLIP:
            return float(value)
        self.problems.append(
            f"{path} = {value!r:.30} (must be a positive number, or null for none; the limit is {MAX_CLIP:,})"
        )
        return None

    def ignored(self, known: Set[str]) -> list[str]:
        """Return a note on unknown options: typos, or options of another program.

        Args:
            known: options that are ignored without a note, because no vector depends on them.
        """
        unknown = sorted(self._options.keys() - self._read - known)
        unknown = [
            path for path in unknown if not any(r.startswith(f"{path}.") for r in self._read)
        ]
        return [f"ignored, unknown: {', '.join(unknown)}"] if unknown else []


def _flat(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    sections = [("", options)]
    while sections:  # no recursion: a file may nest deeper than Python's stack
        prefix, section = sections.pop()
        for key, value in section.items():
            yield prefix + key, value
            if isinstance(value, Mapping):
                sections.append((f"{prefix}{key}.", value))

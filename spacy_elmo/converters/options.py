"""Reader of other programs' options. It collects the names of missing and unknown options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any


class OptionsReader:
    """Reader of nested options, named by paths with dots, such as `lstm.dim`. `BiLMConfig` checks their values."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(_flat(options))
        self._read: set[str] = set()
        self.problems: list[str] = []
        """Messages about missing options."""
        self.notes: list[str] = []
        """Notes for the user on missing options and their default values."""

    def value(self, path: str, *, default: Any = ..., silent: bool = False) -> Any:
        """Return the value of an option, or `default` if the option is missing or null. A missing option adds a
        message to `problems` if there is no default, else to `notes` unless `silent` is set."""
        self._read.add(path)
        value = self._options.get(path)
        if value is not None:
            return value
        if default is ...:
            self.problems.append(f"{path} is missing")
        elif path not in self._options and not silent:
            self.notes.append(f"{path} is missing: assumed {default}")
        return default

    def clip(self, path: str) -> Any:
        """Return the value of a clipping option. None (no clipping) if it is missing, null, 0 or false."""
        return self.value(path, default=None) or None

    def ignored(self, known: Set[str]) -> list[str]:
        """Return one note that names the options that were not read, or no note. Options that are `known` change no
        vector."""
        sections = {path.rpartition(".")[0] for path in self._read}
        if unknown := sorted(self._options.keys() - self._read - known - sections):
            return [f"ignored unknown options: {', '.join(unknown)}"]
        return []


def _flat(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    sections = [("", options)]
    while sections:  # no recursion, because a file may be nested deeper than Python's stack
        prefix, section = sections.pop()
        for key, value in section.items():
            yield prefix + key, value
            if isinstance(value, Mapping):
                sections.append((f"{prefix}{key}.", value))

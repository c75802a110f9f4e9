"""Text that is safe to print on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Escape the control characters of a text, which may come from a stranger's file, and could rule the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

"""Text for the terminal: without control characters, and sizes of files."""

from __future__ import annotations


def printable(text: str) -> str:
    """Escape the control characters of a text: in a text from an unknown file they could control the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def file_size(size: int) -> str:
    """Return a number of bytes in kB, or in MB from 1 MB up."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"

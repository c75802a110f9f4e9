"""Formatting of texts and file sizes for the terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Escape the control characters in a text, because they could manipulate the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def file_size(size: int) -> str:
    """Format a number of bytes, in MB for 1 MB or more, in kB otherwise."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"

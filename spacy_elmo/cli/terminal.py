"""Format texts and file sizes for the terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Escape control characters, because those of an untrusted file could take over the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def file_size(size: int) -> str:
    """Format a number of bytes in kB, or in MB if it is at least 1 MB."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"

"""Standard input of commands whose argument is "-"."""

from __future__ import annotations

import sys
from collections.abc import Iterator


def standard_input() -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and the text of each line of the standard input, which is UTF-8 like files, in
    any locale. White space around the text and a byte order mark are removed.

    Raises:
        ValueError: a line is not UTF-8; the message contains its number.
    """
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf8")
        except UnicodeDecodeError as error:
            raise ValueError(f"Standard input, line {number}: {error}") from error
        yield number, text.removeprefix("\ufeff").strip()

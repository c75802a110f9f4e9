"""ELMoForManyLangs' dictionaries, word.dic and char.dic: a symbol, a tab and its row on every line."""

from __future__ import annotations

import re
from pathlib import Path

_SHOWN = 10


def read_lexicon(path: Path) -> list[str]:
    """The symbol of each row.

    Lines are split and stripped as its `elmo.py` does: at every kind of line break, of every kind of space. A symbol
    that is a space itself is lost that way when it is written, and a line without one is read as U+3000.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it is no UTF-8; or its lines are not of this form (names them); or the rows are not 0, 1, 2 ...,
            each for one symbol.
    """
    try:
        lines = path.read_text("utf8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a UTF-8 text file ({error})") from error
    symbols: dict[int, str] = {}
    seen: set[str] = set()
    problems = []
    for number, line in enumerate(lines, 1):
        *symbol, row = line.strip().split("\t")
        name = symbol[0] if symbol else "\u3000"
        if len(symbol) > 1 or not re.fullmatch("[0-9]{1,9}", row):
            problem = "expected a symbol, a tab and a row"
        elif int(row) >= len(lines):
            problem = f"row {int(row)} of {len(lines)}"
        elif int(row) in symbols or name in seen:
            problem = "a row or a symbol for the second time"
        else:
            symbols[int(row)] = name
            seen.add(name)
            continue
        problems.append(f"line {number}, {line!r:.60}: {problem}")
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        raise ValueError(f"{path}: no dictionary:\n  " + "\n  ".join(problems[:_SHOWN] + more))
    return [symbols[row] for row in range(len(lines))]

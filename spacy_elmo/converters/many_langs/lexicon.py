"""ELMoForManyLangs' dictionaries, word.dic and char.dic: a symbol, a tab and its row on each line."""

from __future__ import annotations

import re
from pathlib import Path

from ..readers.errors import one_error

_SHOWN = 10


def read_lexicon(path: Path) -> list[str]:
    """Return the symbol of each row.

    As in ELMoForManyLangs' `elmo.py`, lines end at every kind of line break and are stripped of every kind of space.
    That removes a symbol that is itself a space, so a line without a symbol stands for U+3000.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: it is no UTF-8 text; or its lines are not of this form (names them); or the rows are not 0, 1, 2
            ..., each for one symbol.
    """
    with one_error(path, "a UTF-8 text file"):
        lines = path.read_text("utf8").splitlines()
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
        raise ValueError(f"{path}: not a dictionary:\n  " + "\n  ".join(problems[:_SHOWN] + more))
    return [symbols[row] for row in range(len(lines))]

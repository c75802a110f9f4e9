"""Reader of ELMoForManyLangs' dictionaries, word.dic and char.dic.

Each line contains a symbol, a tab, and the index of the symbol's row in the word or character embedding
matrix.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..readers.errors import one_error

_SHOWN = 10


def read_lexicon(path: Path) -> list[str]:
    """Read a dictionary of ELMoForManyLangs, and return the symbols in the order of their row indices.

    As in ELMoForManyLangs' `elmo.py`, every Unicode line break ends a line, and Unicode spaces around a line
    are removed. The symbol U+3000 is a Unicode space, so a line without a symbol means U+3000.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: the file is not UTF-8 text, a line is invalid, or a symbol or row index occurs twice. The
            message lists the lines.
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
            problem = "expected a symbol, a tab and a row number"
        elif int(row) >= len(lines):
            problem = f"row {int(row)}, but there are only {len(lines)} rows"
        elif int(row) in symbols or name in seen:
            problem = "the row or the symbol occurs twice"
        else:
            symbols[int(row)] = name
            seen.add(name)
            continue
        problems.append(f"line {number}, {line!r:.60}: {problem}")
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        raise ValueError(
            f"{path} is not a valid dictionary:\n  " + "\n  ".join(problems[:_SHOWN] + more)
        )
    return [symbols[row] for row in range(len(lines))]

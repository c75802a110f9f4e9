"""CoNLL-U, the files of Universal Dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .files import lines

FORM, UPOS, XPOS = 1, 3, 4
"""Columns."""


def conllu_sentences(file: Path) -> Iterator[list[list[str]]]:
    """The sentences of a file: a row of ten columns for each syntactic word, without ranges ("3-4") and empty nodes
    ("5.1"). It may be packed as .gz, .xz or .zst.

    Raises:
        OSError: the file cannot be read.
        ValueError: naming the line that is none of CoNLL-U.
    """
    rows: list[list[str]] = []
    for number, line in lines(file, "strict"):
        row = line.rstrip("\r\n")
        if not row.strip():
            if rows:
                yield rows
            rows = []
        elif not row.startswith("#"):
            columns = row.split("\t")
            # Of ten columns ID is the first.
            if len(columns) != 10 or not columns[0][0:1].isdigit() or not columns[FORM]:
                raise ValueError(
                    f"{file}, line {number}: no line of CoNLL-U, which has ten columns with tabs between them,"
                    f" a number and a word first: {row:.100}"
                )
            if columns[0].isdigit():
                rows.append(columns)
    if rows:
        yield rows

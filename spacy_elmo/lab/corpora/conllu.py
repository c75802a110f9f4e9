"""Reader of CoNLL-U files, the format of Universal Dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...text.files import lines

FORM, UPOS, XPOS = 1, 3, 4
"""Indices of the columns of a CoNLL-U file with the word and its part-of-speech tags."""


def conllu_sentences(file: Path) -> Iterator[list[list[str]]]:
    """Yield the sentences of a CoNLL-U file. A sentence is a list of syntactic words. A word is the list of
    the ten columns of its line.

    Multiword tokens (ID "3-4") and empty nodes ("5.1") are left out. The file can be compressed as .gz, .xz
    or .zst.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not CoNLL-U; the message names the file and the line.
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
            # The first of the ten columns is the ID.
            if len(columns) != 10 or not columns[0][0:1].isdigit() or not columns[FORM]:
                raise ValueError(
                    f"{file}, line {number} is not CoNLL-U: expected ten columns separated by tabs, starting with a"
                    f" number and a word, but got {row:.100}"
                )
            if columns[0].isdigit():
                rows.append(columns)
    if rows:
        yield rows

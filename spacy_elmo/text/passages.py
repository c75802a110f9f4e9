"""Readers of the texts in files: JSONL records, Docs, and the passages that pretraining learns from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from .reading import kind, lines, reading_observer

LINES_PER_PASSAGE = 100
"""Largest number of lines in a passage of a plain text file.

Files with one sentence per line, such as the 1 Billion Word Benchmark, often have no blank line. The limit
splits such a file into many passages, because each passage must fit into memory, and some are held out for
evaluation.
"""
_PIECE = re.compile(r"(?s)\S.{0,99999}(?!\S)|\S.{99999}")
"""A piece of a line, of at most 100,000 characters, that ends before white space if it can. A book can be on one line,
but the Doc of a line must fit into memory."""


class Passage(NamedTuple):
    """A piece of a corpus for pretraining, as a list of lines or as a list of words."""

    parts: list[str]
    """The non-empty lines, or the words, including whitespace tokens."""
    is_tokenized: bool
    """True if `parts` contains words. False if `parts` contains lines."""


_Parsed = TypeVar("_Parsed")
_Piece = TypeVar("_Piece")


def passages(files: Iterable[Path]) -> Iterator[Passage]:
    """Yield the passages of text files, in order: each record of a `.jsonl` file, each Doc of a `.spacy` file, and in
    plain text what ends at a blank line, at the end of the file, or after 100 lines. Empty ones are left out. Lines of
    more than 100,000 characters are cut, and in plain text, each piece of them ends a passage."""
    for file in files:
        read = TEXT_READERS.get(kind(file))
        found = _paragraphs(file) if read is None else map(_passage, read(file))
        yield from (passage for passage in found if passage.parts)


def batches(
    pieces: Iterable[_Piece], characters: int, size: Callable[[_Piece], int]
) -> Iterator[list[_Piece]]:
    """Group consecutive pieces of text. A batch ends with the piece that brings it to that many characters."""
    batch: list[_Piece] = []
    total = 0
    for piece in pieces:
        batch.append(piece)
        total += size(piece)
        if total >= characters:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def _passage(text: str | list[str]) -> Passage:
    if isinstance(text, str):
        pieces = [piece for line in text.split("\n") for piece in _PIECE.findall(line.strip())]
        return Passage(pieces, is_tokenized=False)
    # A prepared corpus stores one type per line, so words must not contain newlines. Whitespace tokens may, because
    # they are never types.
    words = [word if word.isspace() else word.replace("\n", " ") for word in text if word]
    return Passage(words, is_tokenized=True)


def _paragraphs(file: Path) -> Iterator[Passage]:
    paragraph: list[str] = []
    for _, line in lines(file):
        pieces = _PIECE.findall(line.strip())
        for piece in pieces:
            paragraph.append(piece)
            if len(pieces) > 1 or len(paragraph) == LINES_PER_PASSAGE:
                yield Passage(paragraph, is_tokenized=False)
                paragraph = []
        if paragraph and not pieces:
            yield Passage(paragraph, is_tokenized=False)
            paragraph = []
    yield Passage(paragraph, is_tokenized=False)


def json_texts(file: Path) -> Iterator[str | list[str]]:
    """Yield the words (field `tokens`) or else the text (field `text`) of each record of a JSONL file, as spaCy's
    `JsonlCorpus`."""
    return json_lines(file, _text_of)


def json_lines(file: Path, parse: Callable[[object], _Parsed]) -> Iterator[_Parsed]:
    """Yield `parse(record)` for each record of a file with one JSON record per line. Skip blank lines."""
    for number, line in lines(file):
        if not line.strip():
            continue
        try:
            parsed = parse(json.loads(line))
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{file}, line {number} is not valid JSON ({error.msg} at column {error.colno})"
            ) from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file}, line {number}: {error}") from error
        yield parsed


def _text_of(record: object) -> str | list[str]:
    fields = record if isinstance(record, dict) else {}
    tokens, text = fields.get("tokens"), fields.get("text")
    if isinstance(tokens, list) and all(isinstance(token, str) and token for token in tokens):
        "".join(tokens).encode()  # raises an error for half a surrogate pair
        return tokens
    if tokens is None and isinstance(text, str):
        text.encode()
        return text
    raise ValueError(
        'expected {"text": a string} or {"tokens": a list of strings, none empty}, but got '
        f"{json.dumps(record):.100}"
    )


def docbin_words(file: Path) -> Iterator[list[str]]:
    """Yield the words of each Doc of a DocBin file, without annotations. Memory holds the whole file."""
    from spacy.attrs import ORTH
    from spacy.strings import StringStore
    from spacy.tokens import DocBin

    # `get_docs` would also build all annotations, and would require the extensions of the Docs.
    try:
        docs = DocBin().from_disk(file)
        strings, column = StringStore(docs.strings), docs.attrs.index(ORTH)
        texts = [[strings[word] for word in tokens[:, column]] for tokens in docs.tokens]
    except OSError:
        raise
    except Exception as error:  # a damaged file can raise an error of any class
        raise ValueError(f"{file} is not a DocBin, or is damaged ({error})") from error
    if (observer := reading_observer.get()) is not None:
        observer(file.stat().st_size)
    yield from texts


TEXT_READERS: dict[str, Callable[[Path], Iterator[str | list[str]]]] = {
    ".jsonl": json_texts,
    ".spacy": docbin_words,
}
"""{suffix: reader of a text, or of the words of a tokenized text, for each record or Doc}."""

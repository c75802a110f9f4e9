"""Text files of all kinds to documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from .files import kind, lines

LINES_PER_DOCUMENT = 100
"""A document of plain text ends here at the latest. Texts of one sentence per line often have no blank line (1B Word):
this way they too can be held out in parts, and a document fits into memory however long its file is."""


class Document(NamedTuple):
    """One text."""

    text: list[str]
    """Its non-empty lines; or its words, whitespace among them."""
    words: bool
    """Whether it came as words."""


_Parsed = TypeVar("_Parsed")
_REMEDY = ", or set prepare.encoding_errors to replace"


def documents(files: Iterable[Path], errors: str) -> Iterator[Document]:
    """The documents of text files, in order.

    - `.jsonl`, as spaCy's `JsonlCorpus` reads it: a record a line, a document a record, its words in `tokens` or its
      text in `text`.
    - `.spacy`, a DocBin: its Docs' words; annotations are not read. The whole file is in memory at a time.
    - Anything else is plain text: a blank line, the end of a file and the hundredth line end a document.

    Args:
        errors: "strict" or "replace", for bytes that are not UTF-8 and for half a surrogate pair in JSON.

    Raises:
        ValueError: naming file and line of what cannot be read.
    """
    readers = {".jsonl": _records, ".spacy": _docs}
    for file in files:
        yield from readers.get(kind(file), _paragraphs)(file, errors)


def _paragraphs(file: Path, errors: str) -> Iterator[Document]:
    paragraph: list[str] = []
    for _, line in lines(file, errors, remedy=_REMEDY):
        if text := line.strip():
            paragraph.append(text)
        if paragraph and (not text or len(paragraph) == LINES_PER_DOCUMENT):
            yield Document(paragraph, words=False)
            paragraph = []
    if paragraph:
        yield Document(paragraph, words=False)


def _records(file: Path, errors: str) -> Iterator[Document]:
    def parse(record: object) -> Document:
        try:
            return _record(record, errors)
        except UnicodeEncodeError as error:
            raise ValueError(
                f"half a surrogate pair ({error.object[error.start]!r}) is no text. Mend the file{_REMEDY}"
            ) from error

    for document in json_lines(file, parse, errors, remedy=_REMEDY):
        if document.text:
            yield document


def json_lines(
    file: Path, parse: Callable[[object], _Parsed], errors: str, *, remedy: str = ""
) -> Iterator[_Parsed]:
    """What `parse` makes of each record of a file with a JSON record per line. Blank lines are left out.

    Args:
        errors, remedy: as of `lines`.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is no JSON, or `parse` refuses its record; naming the line.
    """
    for number, line in lines(file, errors, remedy=remedy):
        if not line.strip():
            continue
        try:
            parsed = parse(json.loads(line))
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{file}, line {number}: no JSON record ({error.msg} at column {error.colno})"
            ) from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file}, line {number}: {error}") from error
        yield parsed


def _record(record: object, errors: str) -> Document:
    known = record if isinstance(record, dict) else {}
    tokens, text = known.get("tokens"), known.get("text")
    if isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
        return _words(token.encode("utf8", errors).decode("utf8") for token in tokens)
    if tokens is None and isinstance(text, str):
        text = text.encode("utf8", errors).decode("utf8")
        stripped = (line.strip() for line in text.split("\n"))
        return Document([line for line in stripped if line], words=False)
    raise ValueError(
        'expected {"text": a string} or {"tokens": a list of strings}, found '
        f"{json.dumps(record):.100}"
    )


def _docs(file: Path, errors: str) -> Iterator[Document]:
    yield from (document for words in docbin_words(file) if (document := _words(words)).text)


def docbin_words(file: Path) -> Iterator[list[str]]:
    """The words of each Doc of a DocBin. Annotations are not read, and the whole file is in memory.

    Raises:
        OSError: the file cannot be opened.
        ValueError: it is no DocBin, or damaged.
    """
    from spacy.attrs import ORTH
    from spacy.strings import StringStore
    from spacy.tokens import DocBin

    # Not `get_docs`: it would build every annotation, and wants the extensions that the Docs were made with.
    try:
        docs = DocBin().from_disk(file)
        strings, column = StringStore(docs.strings), docs.attrs.index(ORTH)
        texts = [[strings[word] for word in tokens[:, column]] for tokens in docs.tokens]
    except OSError:
        raise
    except Exception as error:  # of zlib, msgpack, numpy or spaCy: whatever the bytes lead to
        raise ValueError(f"{file}: no DocBin, or damaged ({error})") from error
    yield from texts


def _words(words: Iterable[str]) -> Document:
    # The corpus keeps its types one a line, so no word can hold a line's end. Whitespace can: it is no type.
    return Document(
        [word if word.isspace() else word.replace("\n", " ") for word in words if word],
        words=True,
    )

"""Reader that splits text files into documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from .files import kind, lines, reading_observer

LINES_PER_DOCUMENT = 100
"""Largest number of lines in a document of a plain text file.

Files with one sentence per line, such as the 1 Billion Word Benchmark, often have no blank line. The limit
splits such a file into many documents, because each document must fit into memory, and some documents are
held out for evaluation.
"""


class Document(NamedTuple):
    """A document of a corpus, as a list of lines or as a list of words."""

    parts: list[str]
    """The non-empty lines, or the words, including whitespace tokens."""
    is_tokenized: bool
    """True if `parts` contains words. False if `parts` contains lines."""


_Parsed = TypeVar("_Parsed")


def documents(files: Iterable[Path]) -> Iterator[Document]:
    """Yield the documents of text files, in order. Empty documents are left out.

    The type of a file determines what a document is:

    - `.jsonl`, as in spaCy's `JsonlCorpus`: each line is a document, with a list of words in the field
      `tokens` or a text in the field `text`.
    - `.spacy` (a DocBin): each Doc is a document, a list of words. The whole file is in memory.
    - Other files are plain text. A document ends at a blank line, at the end of the file, or after 100 lines.
    """
    readers = {".jsonl": _records, ".spacy": _docs}
    for file in files:
        yield from readers.get(kind(file), _paragraphs)(file)


def _paragraphs(file: Path) -> Iterator[Document]:
    paragraph: list[str] = []
    for _, line in lines(file):
        if text := line.strip():
            paragraph.append(text)
        if paragraph and (not text or len(paragraph) == LINES_PER_DOCUMENT):
            yield Document(paragraph, is_tokenized=False)
            paragraph = []
    if paragraph:
        yield Document(paragraph, is_tokenized=False)


def _records(file: Path) -> Iterator[Document]:
    yield from (document for document in json_lines(file, _record) if document.parts)


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


def _record(record: object) -> Document:
    fields = record if isinstance(record, dict) else {}
    tokens, text = fields.get("tokens"), fields.get("text")
    if isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
        "".join(tokens).encode()  # raises an error for half a surrogate pair
        return _words(tokens)
    if tokens is None and isinstance(text, str):
        text.encode()
        stripped = (line.strip() for line in text.split("\n"))
        return Document([line for line in stripped if line], is_tokenized=False)
    raise ValueError(
        'expected {"text": a string} or {"tokens": a list of strings}, but got '
        f"{json.dumps(record):.100}"
    )


def _docs(file: Path) -> Iterator[Document]:
    yield from (document for words in docbin_words(file) if (document := _words(words)).parts)


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


def _words(words: Iterable[str]) -> Document:
    # A prepared corpus stores one type per line, so words must not contain newlines. Whitespace tokens may, because
    # they are never types.
    return Document(
        [word if word.isspace() else word.replace("\n", " ") for word in words if word],
        is_tokenized=True,
    )

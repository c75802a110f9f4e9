"""Text files to numbered items, and items to shards: what is computed in one piece."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ..text.conllu import FORM, conllu_sentences
from ..text.documents import docbin_words, json_lines
from ..text.files import kind, lines, text_files

Item: TypeAlias = str | list[str]
"""What becomes one Doc: a text, or words."""

CHARACTERS_PER_SHARD = 1 << 16
"""Some 13,000 words of English, or 160 MB of vectors of the original ELMo in all layers."""


@dataclass(frozen=True)
class Shard:
    """Consecutive items of one file, at least one."""

    number: int
    source: str
    """The file."""
    first: int
    """The number of its first item, of all items of all files."""
    items: list[Item]

    @functools.cached_property
    def digest(self) -> str:
        """Another one for other items. 32 hexadecimal digits."""
        return hashlib.blake2b(json.dumps(self.items).encode(), digest_size=16).hexdigest()


def corpus_files(source: str) -> list[Path]:
    """The files of a corpus, sorted: those of `text_files`, and `.conllu`.

    Raises:
        FileNotFoundError, ValueError: as of `text_files`.
    """
    return text_files(source, more=(".conllu",))


def shards(files: Iterable[Path], *, tokenized: bool = False) -> Iterator[Shard]:
    """The items of files in order, cut into shards by their characters; none holds items of two files.

    - `.jsonl`: a record is an item, its words in `tokens` or its text in `text`.
    - `.spacy`: a Doc is an item, its words. Annotations are not read. The whole file is in memory at a time.
    - `.conllu`: a sentence is an item, its syntactic words: neither ranges ("3-4") nor empty nodes ("5.1").
    - Anything else: a line is an item, a blank one too, so that items and lines have the same numbers.

    All but `.spacy` may be packed as .gz, .xz or .zst.

    Args:
        tokenized: texts are words separated by spaces.

    Raises:
        ValueError: naming file and line of what cannot be read.
    """
    number = first = 0
    for file in files:
        for items in _cut(_items(file, tokenized)):
            yield Shard(number, str(file), first, items)
            number += 1
            first += len(items)


def _cut(items: Iterable[Item]) -> Iterator[list[Item]]:
    shard: list[Item] = []
    characters = 0
    for item in items:
        shard.append(item)
        # One more for each item, or a file of blank lines would be one shard.
        characters += 1 + (len(item) if isinstance(item, str) else sum(map(len, item)))
        if characters >= CHARACTERS_PER_SHARD:
            yield shard
            shard, characters = [], 0
    if shard:
        yield shard


def _items(file: Path, tokenized: bool) -> Iterator[Item]:
    readers: dict[str, Callable[[Path], Iterator[Item]]] = {
        ".jsonl": _records,
        ".spacy": docbin_words,
        ".conllu": _sentences,
    }
    for item in readers.get(kind(file), _lines)(file):
        yield item.split() if tokenized and isinstance(item, str) else item


def _lines(file: Path) -> Iterator[Item]:
    for _, line in lines(file, "strict"):
        yield line.strip()


def _records(file: Path) -> Iterator[Item]:
    return json_lines(file, _record, "strict")


def _record(record: object) -> Item:
    known = record if isinstance(record, dict) else {}
    tokens, text = known.get("tokens"), known.get("text")
    if isinstance(tokens, list) and all(isinstance(token, str) and token for token in tokens):
        "".join(tokens).encode()  # half a surrogate pair is a ValueError
        return tokens
    if tokens is None and isinstance(text, str):
        text.encode()
        return text
    raise ValueError(
        'expected {"text": a string} or {"tokens": a list of strings, none empty}, found '
        f"{json.dumps(record):.100}"
    )


def _sentences(file: Path) -> Iterator[Item]:
    for sentence in conllu_sentences(file):
        yield [columns[FORM] for columns in sentence]

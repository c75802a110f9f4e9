"""Reader of a corpus in shards (groups of consecutive items). An item is a line, record, Doc or sentence."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ...digest import json_digest
from ...text.conllu import FORM, conllu_sentences
from ...text.documents import docbin_words, json_lines
from ...text.files import kind, lines, text_files

Item: TypeAlias = str | list[str]
"""An item of a corpus: a text or a list of words. Each item becomes one Doc."""

CHARACTERS_PER_SHARD = 1 << 16
"""Approximate number of characters in a shard (a group of consecutive items). For 13,000 English words, which
have so many characters, the vectors of all layers of the original ELMo take 160 MB."""


@dataclass(frozen=True)
class Shard:
    """One or more consecutive items (texts or lists of words) of one file."""

    number: int
    source: str
    """Path of the file."""
    first: int
    """Index of the first item of the shard in the corpus, counted from 0 over all files."""
    items: list[Item]

    @functools.cached_property
    def digest(self) -> str:
        """Digest (checksum) of the items of the shard, 32 hexadecimal digits."""
        return json_digest(self.items)


def corpus_files(source: str) -> list[Path]:
    """Return the sorted paths of the files of a corpus: `.conllu`, and the types that `text_files` supports.

    Args:
        source: a file, a folder or a glob pattern.

    Raises:
        FileNotFoundError, ValueError: see `text_files`.
    """
    return text_files(source, more=(".conllu",))


def read_shards(files: Iterable[Path], *, tokenized: bool = False) -> Iterator[Shard]:
    """Yield the items of files in order, in shards: groups of consecutive items, with about the same number
    of characters. All items of a shard are from one file.

    The type of file determines the items:

    - `.jsonl`: each record is an item, with a list of words (`tokens`) or a text (`text`).
    - `.spacy` (a DocBin): each Doc is an item, as a list of words. The whole file is in memory.
    - `.conllu`: each sentence is an item, as a list of syntactic words. Multiword tokens (ID "3-4") and empty
      nodes ("5.1") are left out.
    - Any other file: each line is an item. This includes blank lines.

    All files except `.spacy` can be compressed as .gz, .xz or .zst.

    Args:
        tokenized: True if the texts are already tokenized, with spaces between words.

    Raises:
        ValueError: a line or record cannot be read. The message names the file and the line.
    """
    number = first = 0
    for file in files:
        for items in _group(_items(file, tokenized)):
            yield Shard(number, str(file), first, items)
            number += 1
            first += len(items)


def _group(items: Iterable[Item]) -> Iterator[list[Item]]:
    shard: list[Item] = []
    characters = 0
    for item in items:
        shard.append(item)
        # Count one more for each item. Otherwise, all lines of a blank file would be one shard.
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
    fields = record if isinstance(record, dict) else {}
    tokens, text = fields.get("tokens"), fields.get("text")
    if isinstance(tokens, list) and all(isinstance(token, str) and token for token in tokens):
        "".join(tokens).encode()  # raises ValueError for an unpaired surrogate
        return tokens
    if tokens is None and isinstance(text, str):
        text.encode()
        return text
    raise ValueError(
        'expected {"text": a string} or {"tokens": a list of strings, none empty}, but got '
        f"{json.dumps(record):.100}"
    )


def _sentences(file: Path) -> Iterator[Item]:
    for sentence in conllu_sentences(file):
        yield [columns[FORM] for columns in sentence]

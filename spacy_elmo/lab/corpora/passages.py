"""Reader of the passages (texts) of a corpus and of their annotated word senses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...text.files import kind, lines
from .items import Item, corpus_files, read_shards
from .senses import SenseInstance, read_senses


class Passage(NamedTuple):
    """A text of a corpus, with the name of its file and the annotated word senses."""

    item: Item
    source: str
    """Name of the file that contains the text."""
    senses: list[SenseInstance] | None = None
    """Annotated words of the passage with their senses. None if the file is not annotated."""


def read_passages(source: str, *, tokenized: bool = False) -> Iterator[Passage]:
    """Yield the passages of a corpus in order. A passage is a line, a record, a Doc or a sentence.

    A `.jsonl` file is annotated if the first record has a field `sense`. `read_senses` reads annotated files,
    and `read_shards` reads all other files.

    Args:
        source: a file, a folder or a glob pattern.
        tokenized: True if the texts are already tokenized, with spaces between words.

    Raises:
        OSError, ValueError: see `corpus_files`, `read_shards` and `read_senses`.
    """
    for file in corpus_files(source):
        if kind(file) == ".jsonl" and _is_annotated(file):
            for words, instances in read_senses([file]):
                yield Passage(words, file.name, instances)
        else:
            for shard in read_shards([file], tokenized=tokenized):
                yield from (Passage(item, file.name) for item in shard.items)


def _is_annotated(file: Path) -> bool:
    first = next((line for _, line in lines(file, "strict") if line.strip()), "null")
    try:
        record = json.loads(first)
    except json.JSONDecodeError:
        return False  # the reader of the file gives a better message
    return isinstance(record, dict) and "sense" in record

"""A corpus as passages, which become Docs, with the senses of their words where it is annotated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..text.files import kind, lines
from .items import Item, corpus_files, shards
from .senses import SenseInstance, read_senses


class Passage(NamedTuple):
    """What becomes one Doc."""

    item: Item
    source: str
    """The name of its file."""
    senses: list[SenseInstance] | None = None
    """Of those of its words that have one; None: it is not annotated."""


def passages(source: str, *, tokenized: bool = False) -> Iterator[Passage]:
    """The passages of a corpus in order.

    They are the items of `embed.corpus.shards`. A `.jsonl` file whose first record has a field `sense` is annotated,
    and read by `read_senses`.

    Args:
        source: a file, a directory or a glob pattern.
        tokenized: texts are words separated by spaces.

    Raises:
        OSError, ValueError: as of `corpus_files`, `shards` and `read_senses`.
    """
    for file in corpus_files(source):
        if kind(file) == ".jsonl" and _is_annotated(file):
            for words, instances in read_senses([file]):
                yield Passage(words, file.name, instances)
        else:
            for shard in shards([file], tokenized=tokenized):
                yield from (Passage(item, file.name) for item in shard.items)


def _is_annotated(file: Path) -> bool:
    first = next((line for _, line in lines(file, "strict") if line.strip()), "null")
    try:
        record = json.loads(first)
    except json.JSONDecodeError:
        return False  # whoever reads the file says so better
    return isinstance(record, dict) and "sense" in record

"""Text whose words are annotated with the senses of WordNet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..text.documents import json_lines
from ..text.files import lines

_KEY = re.compile(r"\S+%[1-5]:\d\d:\d\d:\S*:\d*")
_ADJECTIVE, _SATELLITE = "%3", "%5"


class SenseInstance(NamedTuple):
    """A word, or several that are one entry of the lexicon, used in a sense."""

    start: int
    end: int
    """The first of its words in the sentence, and that after the last."""
    senses: tuple[str, ...]
    """WordNet's keys of the senses that fit, at least one; the first is the one to learn from."""


class SenseSentence(NamedTuple):
    """A sentence, and those of its words that have a sense."""

    words: list[str]
    instances: list[SenseInstance]


def read_senses(files: Iterable[Path]) -> Iterator[SenseSentence]:
    """The sentences of JSONL files, a record each.

    A record has `tokens`, and for each of them in `sense` the key of WordNet 3.0 (`bank%1:17:01::`) or null. A token of
    several words ("primary election") is read as these words. Where several senses are right, `gold_all` has all of
    them by the number of the token: `{"7": [key, key]}`.

    Raises:
        OSError: a file cannot be read.
        ValueError: naming file and line of what is no such record.
    """
    for file in files:
        yield from json_lines(file, _sentence, "strict")


def _sentence(record: Any) -> SenseSentence:
    known: dict[str, Any] = record if isinstance(record, dict) else {}
    tokens: Any
    senses: Any
    tokens, senses = known.get("tokens"), known.get("sense")
    every = known.get("gold_all", {})
    fits = (
        isinstance(tokens, list)
        and all(isinstance(token, str) and token.strip() for token in tokens)
        and isinstance(senses, list)
        and len(senses) == len(tokens)
        and isinstance(every, dict)
    )
    if not fits:
        raise ValueError(
            'expected {"tokens": [strings], "sense": [a key or null for each token]}, found '
            f"{json.dumps(record):.100}"
        )
    words: list[str] = []
    instances = []
    for number, (token, sense) in enumerate(zip(tokens, senses, strict=True)):
        start = len(words)
        words += token.split()
        if sense is not None:
            keys = tuple(every.get(str(number), [sense]))
            instances.append(SenseInstance(start, len(words), _checked(keys)))
    return SenseSentence(words, instances)


def _checked(keys: tuple[Any, ...]) -> tuple[str, ...]:
    for key in keys:
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no sense key of WordNet, such as bank%1:17:01::")
    return keys


def entry_of(key: str) -> str:
    """The entry of the lexicon that a sense is of: lemma and part of speech, `bank%1` of `bank%1:17:01::`.

    WordNet counts its two sorts of adjectives as one part of speech.
    """
    entry = key.partition(":")[0]
    return entry.removesuffix(_SATELLITE) + _ADJECTIVE if entry.endswith(_SATELLITE) else entry


def read_first_senses(file: Path) -> dict[str, str]:
    """The first sense of every entry, from WordNet's file `index.sense`: by entry, as of `entry_of`.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such file.
    """
    found = {}
    for number, line in lines(file, "strict"):
        fields = line.split()
        if len(fields) != 4 or not _KEY.fullmatch(fields[0]):
            raise ValueError(
                f"{file}, line {number}: no line of WordNet's index.sense, which has a sense key, an offset, the number"
                f" of the sense and a count: {line.strip():.100}"
            )
        if fields[2] == "1":
            found[entry_of(fields[0])] = fields[0]
    return found

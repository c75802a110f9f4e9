"""Readers of word senses: annotated text, and WordNet's list of first senses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..text.passages import json_lines
from ..text.reading import lines

_KEY = re.compile(r"\S+%[1-5]:\d\d:\d\d:\S*:\d*")
_ADJECTIVE, _SATELLITE = "%3", "%5"


class SenseInstance(NamedTuple):
    """One or several consecutive words of a sentence that are annotated as one entry of WordNet."""

    start: int
    """Index of the first annotated word in the sentence."""
    end: int
    """Index of the last annotated word in the sentence, plus 1."""
    senses: tuple[str, ...]
    """WordNet keys of the correct senses, such as `bank%1:17:01::`. Training uses only the first key."""


class SenseSentence(NamedTuple):
    """The words of a sentence, and the annotated words and phrases with their senses."""

    words: list[str]
    instances: list[SenseInstance]


def is_annotated(file: Path) -> bool:
    """Return True if the first record of a JSONL file has a field `sense`."""
    first = next((line for _, line in lines(file) if line.strip()), "null")
    try:
        record = json.loads(first)
    except json.JSONDecodeError:
        return False  # the reader of the file gives a better message
    return isinstance(record, dict) and "sense" in record


def read_senses(files: Iterable[Path]) -> Iterator[SenseSentence]:
    """Yield a sentence with annotated senses for each record of JSONL files.

    A record contains two lists of equal length: the tokens in the field `tokens`, and in the field `sense`, a
    key of WordNet 3.0 (`bank%1:17:01::`) or null for each token. A token of several words ("primary
    election") is split into words. If several senses of a token are correct, the optional field `gold_all`
    maps the index of the token to all correct keys: `{"7": [key, key]}`.
    """
    for file in files:
        yield from json_lines(file, _annotated)


def _annotated(record: Any) -> SenseSentence:
    fields: dict[str, Any] = record if isinstance(record, dict) else {}
    tokens, senses = fields.get("tokens"), fields.get("sense")
    alternatives = fields.get("gold_all", {})
    if not (
        isinstance(tokens, list)
        and all(isinstance(token, str) and token.strip() for token in tokens)
        and isinstance(senses, list)
        and len(senses) == len(tokens)
        and isinstance(alternatives, dict)
    ):
        raise ValueError(
            'expected {"tokens": [strings], "sense": [a key or null for each token]}, but got '
            f"{json.dumps(record):.100}"
        )
    words: list[str] = []
    instances = []
    for number, (token, sense) in enumerate(zip(tokens, senses, strict=True)):
        start = len(words)
        words += token.split()
        if sense is not None:
            keys = alternatives.get(str(number), [sense])
            if not (isinstance(keys, list) and keys):
                raise ValueError(
                    f"gold_all of token {number} must be a list of keys, but is {keys!r:.100}"
                )
            for key in keys:
                if not isinstance(key, str) or not _KEY.fullmatch(key):
                    raise ValueError(f"{key!r} is not a WordNet sense key, such as bank%1:17:01::")
            instances.append(SenseInstance(start, len(words), tuple(keys)))
    return SenseSentence(words, instances)


def entry_of(key: str) -> str:
    """Return the lexicon entry (lemma and part of speech) of a WordNet sense key: `bank%1` for
    `bank%1:17:01::`.

    WordNet has two codes for adjectives, 3 and 5. The entry always contains 3.
    """
    entry = key.partition(":")[0]
    return entry.removesuffix(_SATELLITE) + _ADJECTIVE if entry.endswith(_SATELLITE) else entry


def read_first_senses(file: Path) -> dict[str, str]:
    """Read WordNet's file `index.sense`. Return a dict from each entry (lemma and part of speech, see
    `entry_of`) to the key of its first sense.
    """
    first_senses = {}
    for number, line in lines(file):
        fields = line.split()
        if len(fields) != 4 or not _KEY.fullmatch(fields[0]):
            raise ValueError(
                f"{file}, line {number}: expected a line of WordNet's index.sense (sense key, offset, sense number and"
                f" count), but got {line.strip():.100}"
            )
        if fields[2] == "1":
            first_senses[entry_of(fields[0])] = fields[0]
    return first_senses

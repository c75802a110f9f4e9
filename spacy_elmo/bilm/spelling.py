"""Spelling of words for a network: the spelling rule of a biLM, and the character ids of words, which are the
bytes of bilm-tf or the code points of ELMoForManyLangs."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

BOS, EOS, UNK = "<S>", "</S>", "<UNK>"
"""Special words of bilm-tf's vocabulary files: the start and the end of a sentence, each encoded as one
special character, and the word that replaces all words outside the vocabulary."""
# The first 256 ids of bilm-tf are the bytes themselves. In bilm-tf's serving graph all ids are larger by one, because
# row 0 pads sentences. Here sentences are packed, so this row is not needed.
_SENTENCE_START, _SENTENCE_END, _WORD_START, _WORD_END, BYTE_PADDING = range(256, 261)
N_BYTES = 261
"""Number of character ids of bilm-tf: 256 bytes and 5 marks."""

BOUNDARIES = ("<bos>", "<eos>")
"""The words of ELMoForManyLangs that mark the start and the end of a sentence, each encoded as one special
character."""
N_MARKS = 6
"""Number of marks, which have the first ids of an `Alphabet`."""

UnicodeForm = Literal["", "NFC", "NFD", "NFKC", "NFKD"]
_MARKS = frozenset((BOS, EOS, UNK, *BOUNDARIES))


@dataclass(frozen=True)
class Spelling:
    """Rule that changes words to the spelling of a biLM's training text. Without arguments, the rule changes
    no word.

    Two texts that differ only in their Unicode normal form look the same, but a biLM computes different
    vectors for them, because their bytes differ.

    Args:
        form: Unicode normal form, such as "NFC"; empty: no conversion.
        replace: pairs of a character and its replacement, which is a string and can be empty. The character
            and the replacement must be in the normal form `form`.

    Raises:
        ValueError: a pair does not start with one character, or two pairs start with the same character.
        ValueError: a pair contains white space, or is not in the normal form.
        ValueError: a replacement contains a character that one of the pairs replaces.
    """

    form: UnicodeForm = ""
    replace: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        replaced = [character for character, _ in self.replace]
        problems = [
            f"replace {character!r:.60} by {text!r:.60} ({problem})"
            for character, text in self.replace
            if (problem := self._problem(character, text, replaced))
        ]
        if problems:
            raise ValueError("; ".join(problems))

    def _problem(self, character: str, text: str, replaced: Sequence[str]) -> str:
        if len(character) != 1 or replaced.count(character) > 1:
            return "each key must be one character, and must occur once"
        if any(sign.isspace() for sign in character + text):
            return "white space is not allowed, because it separates words"
        if self.form and not all(
            unicodedata.is_normalized(self.form, part) for part in (character, text)
        ):
            return f"both must be in {self.form}, because words are converted to this form first"
        if repeated := [sign for sign in replaced if sign in text]:
            return f"the replacement contains {repeated[0]!r}, which is replaced too"
        return ""

    @cached_property
    def _table(self) -> dict[int, str]:
        return {ord(character): text for character, text in self.replace}

    def __bool__(self) -> bool:
        return bool(self.form or self.replace)

    def __call__(self, words: Sequence[str]) -> Sequence[str]:
        """Return the words in the spelling of the biLM's training text.

        A word is not changed if it would become empty, or if it is a special token, such as `<S>`. If you
        apply the rule to the result, nothing changes.
        """
        return [self._spell(word) for word in words] if self else words

    def _spell(self, word: str) -> str:
        if word in _MARKS:
            return word
        spelled = word
        while True:
            # Repeated, because removing a character can create neighbors that the normal form joins.
            normal = unicodedata.normalize(self.form, spelled) if self.form else spelled
            previous, spelled = spelled, normal.translate(self._table)
            if spelled == previous:
                return spelled or word


AS_GIVEN = Spelling()
"""The spelling rule that changes no word."""


def char_ids(words: Sequence[str], max_characters: int) -> np.ndarray:
    """Return the bytes of each word, (words, max_characters) int16, by the rule of bilm-tf
    (`data.py:UnicodeCharsVocabulary`).

    The ids of a word are a mark for its start, its bytes in UTF-8, a mark for its end, and padding. A word is
    cut to its first `max_characters - 2` bytes, as in bilm-tf, even if the cut splits a character. `<S>` and
    `</S>` are each encoded as one special character. An unpaired surrogate, which UTF-8 cannot encode,
    becomes `?`.
    """
    max_bytes = max_characters - 2
    raw = [word.encode("utf8", "replace")[:max_bytes] for word in words]
    lengths = np.fromiter(map(len, raw), dtype=np.int64, count=len(raw))
    ids = np.full((len(raw), max_characters), BYTE_PADDING, dtype=np.int16)
    positions = np.arange(max_bytes)
    ids[:, 1:-1][positions < lengths[:, None]] = np.frombuffer(b"".join(raw), dtype=np.uint8)
    ids[:, 0] = _WORD_START
    ids[np.arange(len(raw)), lengths + 1] = _WORD_END
    for boundary, character in ((BOS, _SENTENCE_START), (EOS, _SENTENCE_END)):
        rows = [row for row, word in enumerate(words) if word == boundary]
        ids[rows] = BYTE_PADDING
        ids[rows, :3] = (_WORD_START, character, _WORD_END)
    return ids


class Alphabet:
    """Mapping from characters (Unicode code points) to character ids, which are row indices of the matrix of
    character vectors, by the rule of ELMoForManyLangs (`elmo.py:read_list`, `frontend.py`). All characters
    outside the alphabet have the same id.

    Args:
        characters: the characters in the order of their ids. The first character has the id `N_MARKS`. The
            smaller ids are for marks, such as the start of a word.
    """

    # The converter maps the symbols of ELMoForManyLangs' files to these ids.
    SENTENCE_START, SENTENCE_END, UNKNOWN, PADDING, WORD_START, WORD_END = range(N_MARKS)

    def __init__(self, characters: str) -> None:
        self.characters = characters
        self._rows = {character: row for row, character in enumerate(characters, N_MARKS)}
        marks = self.SENTENCE_START, self.SENTENCE_END
        self._boundaries = {word: [mark] for word, mark in zip(BOUNDARIES, marks, strict=True)}

    def ids(self, words: Sequence[str], max_characters: int) -> np.ndarray:
        """Return the character ids of each word, (words, max_characters) int32.

        The ids of a word are a mark for its start, its characters, a mark for its end, and padding. A word is
        cut to its first `max_characters - 2` characters. `<bos>` and `<eos>` are each encoded as one special
        character.
        """
        ids = np.full((len(words), max_characters), self.PADDING, dtype=np.int32)
        for row, word in zip(ids, words, strict=True):
            word = word[: max_characters - 2]
            inner = self._boundaries.get(word) or [self._rows.get(c, self.UNKNOWN) for c in word]
            row[: len(inner) + 2] = [self.WORD_START, *inner, self.WORD_END]
        return ids

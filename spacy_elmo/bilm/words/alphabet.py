"""Words to character ids by code points, the rule of ELMoForManyLangs (its `elmo.py:read_list`, `frontend.py`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# The first rows of the table. Which of its files' symbols opens a word is the converter's business, not ours.
SENTENCE_START, SENTENCE_END, UNKNOWN, PADDING, WORD_START, WORD_END = range(6)
N_MARKS = 6

BOUNDARIES = ("<bos>", "<eos>")
"""The sentence boundaries, each of which is spelt with one special character."""


class Alphabet:
    """The code points that have a row of their own; all others share one.

    Args:
        characters: those of the rows from `N_MARKS` on, in their order.
    """

    def __init__(self, characters: str) -> None:
        self.characters = characters
        self._rows = {character: row for row, character in enumerate(characters, N_MARKS)}
        self._boundaries = dict(zip(BOUNDARIES, (SENTENCE_START, SENTENCE_END), strict=True))

    def ids(self, words: Sequence[str], max_characters: int) -> np.ndarray:
        """Ids of the characters of each word: start mark, at most `max_characters - 2` characters, end mark, padding.

        `<bos>` and `<eos>` give the rows of the sentence boundaries.

        Args:
            words: K strings.
            max_characters: positions of a row.

        Returns:
            (K, max_characters) int32.
        """
        ids = np.full((len(words), max_characters), PADDING, dtype=np.int32)
        for row, word in zip(ids, words, strict=True):
            spelt = [WORD_START, *self._spell(word[: max_characters - 2]), WORD_END]
            row[: len(spelt)] = spelt
        return ids

    def _spell(self, word: str) -> list[int]:
        if word in self._boundaries:
            return [self._boundaries[word]]
        return [self._rows.get(character, UNKNOWN) for character in word]

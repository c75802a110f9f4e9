"""Character ids from code points, by the rule of ELMoForManyLangs (`elmo.py:read_list`, `frontend.py`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# The first rows of the table. The converter maps the symbols of ELMoForManyLangs' files to them.
SENTENCE_START, SENTENCE_END, UNKNOWN, PADDING, WORD_START, WORD_END = range(6)
N_MARKS = 6

BOUNDARIES = ("<bos>", "<eos>")
"""The words that mark the start and the end of a sentence. Each of these words is encoded as one special
character."""


class Alphabet:
    """Mapping from characters (Unicode code points) to character ids, which are row indices of the matrix of
    character vectors. All characters outside the alphabet have the same id.

    Args:
        characters: the characters in the order of their ids. The first character has the id `N_MARKS`. The
            smaller ids are for marks, such as the start of a word.
    """

    def __init__(self, characters: str) -> None:
        self.characters = characters
        self._rows = {character: row for row, character in enumerate(characters, N_MARKS)}
        self._boundaries = dict(zip(BOUNDARIES, (SENTENCE_START, SENTENCE_END), strict=True))

    def ids(self, words: Sequence[str], max_characters: int) -> np.ndarray:
        """Return the character ids of each word, (words, max_characters) int32.

        The ids of a word are a mark for its start, its characters, a mark for its end, and padding. A word is
        cut to its first `max_characters - 2` characters. `<bos>` and `<eos>` are each encoded as one special
        character.
        """
        ids = np.full((len(words), max_characters), PADDING, dtype=np.int32)
        for row, word in zip(ids, words, strict=True):
            used = [WORD_START, *self._character_ids(word[: max_characters - 2]), WORD_END]
            row[: len(used)] = used
        return ids

    def _character_ids(self, word: str) -> list[int]:
        if word in self._boundaries:
            return [self._boundaries[word]]
        return [self._rows.get(character, UNKNOWN) for character in word]

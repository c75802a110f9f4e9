"""Character ids from bytes, by the rule of bilm-tf (`data.py:UnicodeCharsVocabulary`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# The first 256 ids are the bytes themselves. In bilm-tf's serving graph all ids are larger by one, because row 0 pads
# sentences. Here sentences are packed, so this row is not needed.
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, PADDING = range(256, 261)
N_CHARACTERS = 261

BOS, EOS, UNK = "<S>", "</S>", "<UNK>"
"""Special words of bilm-tf's vocabulary files: the start and the end of a sentence, each encoded as one
special character, and the word that replaces all words outside the vocabulary."""


def char_ids(words: Sequence[str], max_characters: int) -> np.ndarray:
    """Return the character ids of each word, (words, max_characters) int16.

    The ids of a word are a mark for its start, its bytes in UTF-8, a mark for its end, and padding. A word is
    cut to its first `max_characters - 2` bytes, as in bilm-tf, even if the cut splits a character. `<S>` and
    `</S>` are each encoded as one special character. An unpaired surrogate, which UTF-8 cannot encode,
    becomes `?`.
    """
    max_bytes = max_characters - 2
    raw = [word.encode("utf8", "replace")[:max_bytes] for word in words]
    lengths = np.fromiter(map(len, raw), dtype=np.int64, count=len(raw))
    ids = np.full((len(raw), max_characters), PADDING, dtype=np.int16)
    positions = np.arange(max_bytes)
    ids[:, 1:-1][positions < lengths[:, None]] = np.frombuffer(b"".join(raw), dtype=np.uint8)
    ids[:, 0] = WORD_START
    ids[np.arange(len(raw)), lengths + 1] = WORD_END
    for boundary, character in ((BOS, SENTENCE_START), (EOS, SENTENCE_END)):
        rows = [row for row, word in enumerate(words) if word == boundary]
        ids[rows] = PADDING
        ids[rows, :3] = (WORD_START, character, WORD_END)
    return ids

"""Rule that splits text into sentences, for pretraining and for prediction.

The rule is the same as in spaCy's `Sentencizer` with default settings. In addition, a whitespace token that
contains a newline ends a sentence. The rule needs only the words, so training and prediction split a text
into the same sentences.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Sequence

import numpy as np

# `Sentencizer.default_punct_chars` of spaCy 3.8, in the order of code points.
_ENDS = frozenset(
    "!.?\u0589\u061f\u06d4\u0700\u0701\u0702\u07f9\u0964\u0965\u104a\u104b\u1362\u1367\u1368"
    "\u166e\u1735\u1736\u1803\u1809\u1944\u1945\u1aa8\u1aa9\u1aaa\u1aab\u1b5a\u1b5b\u1b5e"
    "\u1b5f\u1c3b\u1c3c\u1c7e\u1c7f\u203c\u203d\u2047\u2048\u2049\u2e2e\u2e3c\u3002\ua4ff"
    "\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d\uaa5e\uaa5f"
    "\uaaf0\uaaf1\uabeb\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61\U00010a56\U00010a57"
    "\U00011047\U00011048\U000110be\U000110bf\U000110c0\U000110c1\U00011141\U00011142"
    "\U00011143\U000111c5\U000111c6\U000111cd\U000111de\U000111df\U00011238\U00011239"
    "\U0001123b\U0001123c\U000112a9\U0001144b\U0001144c\U000115c2\U000115c3\U000115c9"
    "\U000115ca\U000115cb\U000115cc\U000115cd\U000115ce\U000115cf\U000115d0\U000115d1"
    "\U000115d2\U000115d3\U000115d4\U000115d5\U000115d6\U000115d7\U00011641\U00011642"
    "\U0001173c\U0001173d\U0001173e\U00011a42\U00011a43\U00011a9b\U00011a9c\U00011c41"
    "\U00011c42\U00016a6e\U00016a6f\U00016af5\U00016b37\U00016b38\U00016b44\U0001bc9f"
    "\U0001da88"
)

_PLAIN, _END, _NEWLINE, SPACE, _LINE_BREAK = 1, 2, 4, 8, 16
"""Properties of a word, as bits: not only punctuation (`_PLAIN`), end mark (`_END`), whitespace with a
newline (`_NEWLINE`), any whitespace (`SPACE`), whitespace with exactly one newline (`_LINE_BREAK`).
Whitespace tokens belong to no sentence."""

# In the bytes of kinds: what ends a sentence if anything follows. That is an end mark with the punctuation after it, or
# whitespace with a newline.
_BREAK = re.compile(rb"\x02[\x00\x02]*|[\x0d\x1d]")
_BREAK_OF_WRAPPED = re.compile(rb"\x02[\x00\x02]*|\x0d")


def word_kinds(words: Sequence[str]) -> np.ndarray:
    """For each word, return the properties that the sentence rule needs, as the bits of a number: (words,)
    uint8."""
    return np.fromiter(map(_kind, words), dtype=np.uint8, count=len(words))


def starts_of_kinds(
    kinds: np.ndarray, lengths: Sequence[int] | None = None, *, wrapped: bool = False
) -> np.ndarray:
    """Return an array that is True for each word that starts a sentence, (words,) bool.

    The first word of a text starts a sentence. Whitespace tokens are also words here.

    Args:
        kinds: result of `word_kinds` for the words of one or several texts, (words,).
        lengths: number of words of each text; None: there is one text.
        wrapped: the lines of the text are wrapped at a width, so a single newline is only a space. An empty line
            ends a sentence.
    """
    pattern = _BREAK_OF_WRAPPED if wrapped else _BREAK
    raw = kinds.tobytes()
    starts = bytearray(len(raw))  # whose elements are set faster than those of an array
    borders = itertools.accumulate([len(raw)] if lengths is None else lengths, initial=0)
    for start, end in itertools.pairwise(borders):
        for place in (start, *(found.end() for found in pattern.finditer(raw, start, end))):
            if place < end:
                starts[place] = True
    return np.frombuffer(starts, dtype=bool)


@functools.lru_cache(maxsize=1 << 16)
def _kind(word: str) -> int:
    if word.isspace():
        newlines = word.count("\n")
        return _PLAIN | SPACE | _NEWLINE * (newlines > 0) | _LINE_BREAK * (newlines == 1)
    if word in _ENDS:
        return _END
    return 0 if all(unicodedata.category(char)[0] == "P" for char in word) else _PLAIN

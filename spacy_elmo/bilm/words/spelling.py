"""The spelling of words: a Unicode normal form and replaced characters, by which equal words get equal vectors."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from .alphabet import BOUNDARIES
from .char_ids import BOS, EOS, UNK

UnicodeForm = Literal["", "NFC", "NFD", "NFKC", "NFKD"]
_MARKS = frozenset((BOS, EOS, UNK, *BOUNDARIES))


@dataclass(frozen=True)
class Spelling:
    """The rule that turns a word into the form of the training text. Without arguments it leaves words alone.

    Text in another normal form, or of an edition that writes `v` where the training text has `u`, looks the same to
    readers or nearly so, but it has other bytes, and a biLM would compute other vectors.

    Args:
        form: Unicode normal form; empty: none.
        replace: pairs of a character, written in that form, and the text that replaces it, which may be empty.

    Raises:
        ValueError: the form is unknown; or a replacement is not a character and a text, has white space or is not in
            the normal form, or contains a character that is replaced itself.
    """

    form: UnicodeForm = ""
    replace: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        problems = []
        if self.form not in get_args(UnicodeForm):
            known = ", ".join(get_args(UnicodeForm)[1:])
            problems.append(f"unicode_form = {self.form!r:.60} (known: {known}; empty for none)")
        else:
            replaced = [character for character, _ in self.replace]
            for character, text in self.replace:
                if problem := self._problem(character, text, replaced):
                    problems.append(f"replace {character!r:.60} by {text!r:.60} ({problem})")
        if problems:
            raise ValueError("; ".join(problems))

    def _problem(self, character: str, text: str, replaced: Sequence[str]) -> str:
        if len(character) != 1 or replaced.count(character) > 1:
            return "each key must be one character, and occur once"
        if any(sign.isspace() for sign in character + text):
            return "white space separates words"
        if self.form and not all(
            unicodedata.is_normalized(self.form, part) for part in (character, text)
        ):
            return f"both must be in {self.form}, the normal form that comes first"
        if repeated := [sign for sign in replaced if sign in text]:
            return f"{repeated[0]!r} is replaced itself"
        return ""

    @cached_property
    def _table(self) -> dict[int, str]:
        return {ord(character): text for character, text in self.replace}

    def __bool__(self) -> bool:
        return bool(self.form or self.replace)

    def __call__(self, words: Sequence[str]) -> Sequence[str]:
        """Return the words in the form of the training text. Applied twice, the rule gives the same as once.

        A word of which nothing would remain stays as it is, and so do the special words of vocabularies.
        """
        return [self._spell(word) for word in words] if self else words

    def _spell(self, word: str) -> str:
        if word in _MARKS:
            return word
        spelled = word
        while True:
            # A removed character can leave others beside each other that the normal form joins: hence the loop.
            normal = unicodedata.normalize(self.form, spelled) if self.form else spelled
            previous, spelled = spelled, normal.translate(self._table)
            if spelled == previous:
                return spelled or word


AS_GIVEN = Spelling()
"""The rule that leaves every word as it is."""

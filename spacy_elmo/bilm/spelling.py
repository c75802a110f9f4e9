"""The spelling rule of a biLM, and the special words of vocabularies, which no rule changes."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

BOS, EOS, UNK = "<S>", "</S>", "<UNK>"
"""Special words of bilm-tf's vocabulary files: the start and the end of a sentence, each encoded as one
special character, and the word that replaces all words outside the vocabulary."""
MANY_LANGS_BOUNDARIES = ("<bos>", "<eos>")
"""The words of ELMoForManyLangs that mark the start and the end of a sentence, each encoded as one special
character."""
UnicodeForm = Literal["", "NFC", "NFD", "NFKC", "NFKD"]
_MARKS = frozenset((BOS, EOS, UNK, *MANY_LANGS_BOUNDARIES))


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

    def __bool__(self) -> bool:
        return bool(self.form or self.replace)

    def __call__(self, words: Sequence[str]) -> Sequence[str]:
        """Return the words in the spelling of the biLM's training text.

        A word is not changed if it would become empty, or if it is a special token, such as `<S>`. If you
        apply the rule to the result, nothing changes.
        """
        table = str.maketrans(dict(self.replace))
        return [self._spell(word, table) for word in words] if self else words

    def _spell(self, word: str, table: Mapping[int, str]) -> str:
        if word in _MARKS:
            return word
        spelled = word
        while True:
            # Repeated, because removing a character can create neighbors that the normal form joins.
            normal = unicodedata.normalize(self.form, spelled) if self.form else spelled
            previous, spelled = spelled, normal.translate(table)
            if spelled == previous:
                return spelled or word


AS_GIVEN = Spelling()
"""The spelling rule that changes no word."""

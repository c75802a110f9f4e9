"""Errors like those of optical character recognition in the words of Docs.

Each word with a letter is changed with a given probability, the share. It gets one error if it has up to eight
characters, two if it has up to sixteen, and so on. An error changes a random letter:

- 70 %: it becomes a letter that looks similar (`CONFUSIONS`, or the same letter without its accent); if there is none,
  it becomes a letter of the Docs, drawn by its frequency;
- 15 %: it is removed, unless the word has no other character;
- 15 %: a letter of the Docs is added before it.

Only the characters of words change, so spaces and annotations stay aligned. The same Docs, share and seed give the same
errors on every machine.
"""

import collections
import random
import unicodedata
from collections.abc import Sequence

import spacy
from spacy.attrs import NORM, ORTH, SPACY
from spacy.tokens import Doc, DocBin

_PAIRS = (
    "a o|b h|c e|d cl|f s|g q|h li|i l|i 1|l 1|m rn|m ni|n u|n ri|o 0|r t|u ii|u v|v y|w vv|z 2|B 8|C G|D O|E F"
    "|I l|O 0|O Q|S 5"
    "|α σ|β ϐ|γ τ|ε ϲ|η π|ι ί|κ χ|ν υ|ο σ|ρ p|φ ψ|Α Λ|Ε Σ|Η Π|Θ Ο"
    "|а о|б 6|в ъ|г т|е с|з э|и н|к х|л п|ш щ|ь ы"
)


def _confusions() -> dict[str, list[str]]:
    table: dict[str, list[str]] = collections.defaultdict(list)
    for pair in _PAIRS.split("|"):
        first, second = pair.split()
        table[first].append(second)
        if len(second) == 1:
            table[second].append(first)
    return dict(table)


CONFUSIONS = _confusions()
"""For each character the texts that look similar, for Latin, Greek and Cyrillic letters."""


def corrupted(word: str, letters: Sequence[str], generator: random.Random) -> str:
    """Return a word with one error for each eight characters or part of them.

    Args:
        word: the word. If it has no letter, it is not changed.
        letters: the letters that may be inserted, each as often as it occurs in the text.
    """
    for _ in range(1 + max(0, len(word) - 1) // 8):
        indices = [index for index, sign in enumerate(word) if sign.isalpha()]
        if not indices:
            return word
        index = generator.choice(indices)
        kind, sign = generator.random(), word[index]
        if kind < 0.7:
            new = _look_alike(sign, letters, generator)
        elif kind < 0.85:
            new = "" if len(word) > 1 else sign
        else:
            new = generator.choice(letters) + sign
        word = word[:index] + new + word[index + 1 :]
    return word


def _look_alike(sign: str, letters: Sequence[str], generator: random.Random) -> str:
    base = unicodedata.normalize("NFD", sign)[0]
    choices = [*CONFUSIONS.get(sign, ()), *([base] if base != sign else CONFUSIONS.get(base, ()))]
    choices = choices or [letter for letter in letters if letter != sign] or [sign]
    return generator.choice(choices)


def corrupt(docs: DocBin, share: float, seed: int) -> DocBin:
    """Return the Docs with errors in a share of their words, which must have at least one letter."""
    vocab = spacy.blank("xx").vocab
    clean = list(docs.get_docs(vocab))
    letters = sorted(
        sign for doc in clean for token in doc for sign in token.text if sign.isalpha()
    )
    generator = random.Random(seed)
    annotations = [
        attribute for attribute in DocBin().attrs if attribute not in (ORTH, NORM, SPACY)
    ]
    noisy = DocBin(store_user_data=True)
    for doc in clean:
        texts = [token.text for token in doc]
        for index, text in enumerate(texts):
            if any(map(str.isalpha, text)) and generator.random() < share:
                texts[index] = corrupted(text, letters, generator)
        known = not doc.has_unknown_spaces
        spaces = [bool(token.whitespace_) for token in doc] if known else None
        copy = Doc(vocab, words=texts, spaces=spaces)
        copy.from_array(annotations, doc.to_array(annotations))
        copy.cats = doc.cats
        noisy.add(copy)
    return noisy

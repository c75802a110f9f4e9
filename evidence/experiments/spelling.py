"""The spelling of the input, which is the same for all variants of a language: that of its biLM.

A biLM respells words by the rule in its `[model]`, so that `via` and `uia` are one word. Hash embeddings and floret
have no such rule. So labelled data and raw text are respelled in advance, and the comparison shows only differences
between models.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from spacy.attrs import ORTH
from spacy.strings import StringStore
from spacy.tokens import DocBin

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.bilm.words.spelling import AS_GIVEN, Spelling
from spacy_elmo.weight_names import find_weights


def spelling_of(weights: str | None) -> Spelling:
    """Return the spelling rule of a biLM.

    Args:
        weights: name or path of the biLM; None: a rule that changes no word.

    Raises:
        OSError, ValueError: the weights do not exist or cannot be read.
    """
    return AS_GIVEN if weights is None else Weights.load(find_weights(weights)).config.spelling


def spelled(words: Sequence[str], spelling: Spelling) -> Sequence[str]:
    """Return the words as the rule spells them, with a letter and its accents as one code point.

    Affixes of hash embeddings and word pieces of floret have a fixed number of code points, so after a rule with NFD
    they would have fewer letters. The biLM applies its rule again, which separates letters and accents.
    """
    if not spelling:
        return words
    return [unicodedata.normalize("NFC", word) for word in spelling(words)]


def respell(docs: DocBin, spelling: Spelling) -> DocBin:
    """Respell the words of Docs, and return the Docs. Their annotation is kept.

    The serialized form is changed, so no annotation can be lost. Their spaces are marked as unknown, so that no
    tokenizer splits the words of a treebank again.
    """
    strings = StringStore(docs.strings)
    column = docs.attrs.index(ORTH)
    # Arrays from disk are read-only.
    docs.tokens = [tokens.copy() for tokens in docs.tokens]
    for tokens, flags in zip(docs.tokens, docs.flags, strict=True):
        words = spelled([strings[int(word)] for word in tokens[:, column]], spelling)
        tokens[:, column] = [strings.add(word) for word in words]
        flags["has_unknown_spaces"] = True
    docs.strings.update(strings)
    return docs

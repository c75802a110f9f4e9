"""The spelling that all variants of a language read: that of its biLM.

A biLM makes one word of the spellings that its `[model]` names, such as `via` and `uia`. Hash embeddings and floret
have no such rule, so labelled sets and raw text get it before anybody reads them: what is compared is the models alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from spacy.attrs import ORTH
from spacy.strings import StringStore
from spacy.tokens import DocBin

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.bilm.words.spelling import AS_GIVEN, Spelling
from spacy_elmo.catalogue.weight_names import find_weights


def spelling_of(weights: str | None) -> Spelling:
    """Return the rule of a biLM, given by its name or path; None: words stay as they are.

    Raises:
        OSError, ValueError: there are no such weights.
    """
    return AS_GIVEN if weights is None else Weights.load(find_weights(weights)).config.spelling


def spelled(words: Sequence[str], spelling: Spelling) -> Sequence[str]:
    """Return the words as the rule spells them, a letter and its accents as one code point.

    Affixes of hash embeddings and word pieces of floret count code points, so that a rule with NFD would leave them
    fewer letters. The biLM takes the letters apart again.
    """
    if not spelling:
        return words
    return [unicodedata.normalize("NFC", word) for word in spelling(words)]


def respell(docs: DocBin, spelling: Spelling) -> DocBin:
    """Change the words of Docs, keep their annotation, and return them.

    They are changed in the serialized form: nothing that a Doc carries can be lost. Their spaces count as unknown, as
    those of an entity set do, so that no tokenizer takes the words of a treebank apart.
    """
    strings = StringStore(docs.strings)
    column = docs.attrs.index(ORTH)
    # What was read from disk cannot be written to.
    docs.tokens = [tokens.copy() for tokens in docs.tokens]
    for tokens, flags in zip(docs.tokens, docs.flags, strict=True):
        words = spelled([strings[int(word)] for word in tokens[:, column]], spelling)
        tokens[:, column] = [strings.add(word) for word in words]
        flags["has_unknown_spaces"] = True
    docs.strings.update(strings)
    return docs

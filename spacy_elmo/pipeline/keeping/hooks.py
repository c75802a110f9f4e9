"""`doc.vector`, `span.similarity(...)` and their like out of the ELMo vectors: the `hooks` option."""

from __future__ import annotations

import warnings
from typing import Any

from spacy.errors import Warnings
from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module
from thinc.types import Floats1d

from .extensions import span_vector, token_vector


def set_hooks(doc: Doc) -> None:
    """Let the Doc, its spans and its tokens answer with their ELMo vectors: `vector`, `vector_norm`, `has_vector` and
    `similarity`.

    A Doc's vector is the mean over its tokens, as that of the span that holds them all. Without layers on the
    Doc, as on what `as_doc` cuts out of it, everything answers as spaCy does where it has no vectors: with an
    empty one, and a similarity of 0 with spaCy's warning W008.

    Hooks are functions, so neither `to_bytes`, `DocBin` nor `nlp.pipe(n_process=2)` carries them (spaCy warns:
    W109), though all three carry the layers. Call this on Docs that have come that way.
    """
    doc.user_hooks |= {"vector": _doc_vector, "vector_norm": _norm, **_COMMON}
    # No norm for spans: spaCy has its own from the vector, and calls the "vector" hook where there is one for it.
    doc.user_span_hooks |= {"vector": _span_vector, **_COMMON}
    doc.user_token_hooks |= {"vector": _token_vector, "vector_norm": _norm, **_COMMON}


def _doc_vector(doc: Doc) -> Floats1d:
    return _span_vector(doc[:])


def _span_vector(span: Span) -> Floats1d:
    return _or_empty(span_vector(span), span.doc)


def _token_vector(token: Token) -> Floats1d:
    return _or_empty(token_vector(token), token.doc)


def _or_empty(vector: Floats1d | None, doc: Doc) -> Floats1d:
    if vector is not None:
        return vector
    xp: Any = get_array_module(doc.vocab.vectors.data)
    return xp.zeros((0,), dtype="float32")


def _norm(thing: Any) -> float:
    vector = thing.vector
    return float((vector * vector).sum()) ** 0.5


def _has_vector(thing: Any) -> bool:
    return bool(thing.vector.any())


def _similarity(thing: Any, other: Any) -> float:
    """The cosine. Equal words give no 1 unasked, because what they mean depends on where they stand.

    Raises:
        ValueError: the other's vector is of another kind.
    """
    one, two = thing.vector, other.vector
    if not (one.any() and two.any()):
        warnings.warn(Warnings.W008.format(obj=type(thing).__name__), stacklevel=2)
        return 0.0
    if one.shape != two.shape:
        raise ValueError(
            f"An ELMo vector of width {one.shape[0]} cannot be compared with one of width {two.shape[0]}: the other"
            f" {type(other).__name__} has its vector from somewhere else. Run the same elmo component on both"
        )
    return float(one @ two) / (_norm(thing) * _norm(other))


_COMMON: dict[str, Any] = {"has_vector": _has_vector, "similarity": _similarity}

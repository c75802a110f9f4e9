"""Function for the option `hooks`. It lets `doc.vector`, `span.similarity(...)` and similar attributes use
ELMo vectors."""

from __future__ import annotations

import warnings
from typing import Any

from spacy.errors import Warnings
from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module
from thinc.types import Floats1d

from .extensions import span_vector, token_vector


def set_hooks(doc: Doc) -> None:
    """Let `vector`, `vector_norm`, `has_vector` and `similarity` of a Doc, its spans and its tokens use ELMo
    vectors.

    The vector of a Doc is the vector of the span that contains all its tokens. If a Doc has no layers, as
    after `as_doc`, the results are the same as in a spaCy pipeline without vectors: an empty vector, and a
    similarity of 0 with spaCy's warning W008.

    spaCy drops hooks in `to_bytes`, `DocBin` and `nlp.pipe(n_process=2)`, because hooks are functions
    (warning W109). spaCy keeps the layers of such Docs, so you can call this function again.
    """
    doc.user_hooks |= {"vector": _doc_vector, "vector_norm": _norm, **_COMMON}
    # Spans have no hook for the norm: spaCy computes it from `span.vector`, which uses the "vector" hook.
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
    """Return the cosine of the vectors of two objects (Docs, spans or tokens). The cosine of equal words can
    be below 1, because vectors depend on context. If a vector is empty or zero, warn and return 0.

    Raises:
        ValueError: the vectors have different widths.
    """
    vector, other_vector = thing.vector, other.vector
    if not (vector.any() and other_vector.any()):
        warnings.warn(Warnings.W008.format(obj=type(thing).__name__), stacklevel=2)
        return 0.0
    if vector.shape != other_vector.shape:
        raise ValueError(
            f"An ELMo vector of width {len(vector)} cannot be compared with one of width {len(other_vector)}: the"
            f" vector of the other {type(other).__name__} has another source. Run the same elmo component on both"
        )
    return float(vector @ other_vector) / (_norm(thing) * _norm(other))


_COMMON: dict[str, Any] = {"has_vector": _has_vector, "similarity": _similarity}

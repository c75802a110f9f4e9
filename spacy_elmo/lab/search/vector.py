"""Computation of the vector of a Doc, Span or Token for similarity search."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from spacy.tokens import Doc, Span, Token
from thinc.api import to_numpy

from ...pipeline.store.extensions import layers_of, span_vector

Tokens: TypeAlias = Doc | Span | Token


def as_span(tokens: Tokens) -> Span:
    """Convert a Doc, Span or Token to a Span with the same tokens."""
    if isinstance(tokens, Span):
        return tokens
    if isinstance(tokens, Token):
        return tokens.doc[tokens.i : tokens.i + 1]
    return tokens[:]


def vector_of(span: Span, layer: int | None) -> np.ndarray | None:
    """Return the mean ELMo vector of the tokens of a Span, (width,) float32. Whitespace tokens are left out.
    If there are no other tokens, return None.

    Args:
        layer: index of the layer; None: the average of all layers, as in `span._.elmo`.

    Raises:
        ValueError: the Doc has no vectors, or the Doc has no layer with this index.
    """
    words = [token.i for token in span if not token.is_space]
    if not words:
        return None
    if layer is None:
        vector = span_vector(span)
        if vector is None:
            raise ValueError(
                "The Doc has no ELMo vectors. Process it with a pipeline that has an elmo component"
            )
        return to_numpy(vector)
    layers = layers_of(span.doc)
    if layers is None:
        raise ValueError(
            'The Doc has no ELMo layers. Process it with an elmo that has store = "layers"; or search in the average of'
            " the layers, with layer = None"
        )
    if not 0 <= layer < len(layers):
        raise ValueError(
            f"layer = {layer} does not exist. The Doc has the layers 0 to {len(layers) - 1}"
        )
    return to_numpy(layers[layer, words].mean(axis=0, dtype="float32"))

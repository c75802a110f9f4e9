"""`spacy-elmo.CharLSTMEmbed.v1`: embeddings of words from their characters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.api import HashEmbed, Model, uniform_init
from thinc.types import Floats2d

from .bilstm import bilstm, split

_LONGEST = 48
"""Characters of a word that are read. The biLM reads as many bytes."""


def CharLSTMEmbed_v1(
    width: int, char_width: int = 64, rows: int = 1000
) -> Model[list[Doc], list[Floats2d]]:
    """Build embeddings of words, (n_tokens, width) per Doc: the last outputs of two LSTMs that read the characters of
    the word, one in each direction. So words that are not in the training data have useful embeddings, too, and these
    are trained with the other layers. UDPipe 2 has GRUs instead of LSTMs (Straka 2018).

    Args:
        width: width of the embeddings, both directions together.
        char_width: width of the embeddings of characters.
        rows: rows of their table. Each character has four of them.
    """
    # As large as the other inputs of an encoder. From small ones, the LSTMs have outputs near 0 for a long time.
    large = partial(uniform_init, lo=-1.0, hi=1.0)
    layers: list[Model] = [HashEmbed(char_width, rows, seed=0, initializer=large), bilstm(width)]
    return Model("char-lstm", forward, init=init, dims={"nO": width}, layers=layers)


def init(
    model: Model[list[Doc], list[Floats2d]], X: list[Doc] | None = None, Y: Any = None
) -> None:
    """Initialize both layers."""
    characters, lstm = model.layers
    characters.initialize()
    lstm.set_dim("nI", characters.get_dim("nO"))
    lstm.initialize()


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    """Compute the embedding of each word. Each distinct word of the batch is read once."""
    characters, lstm = model.layers
    ops, half = model.ops, model.get_dim("nO") // 2
    lengths = [len(doc) for doc in docs]
    if not any(lengths):
        return [ops.alloc2f(0, 2 * half) for _ in docs], lambda gradient: []
    orths = np.concatenate([doc.to_array([ORTH]).reshape(-1) for doc in docs])
    distinct, inverse = np.unique(orths, return_inverse=True)
    # Docs of one batch may have several vocabularies.
    texts = {token.orth: token.text for doc in docs for token in doc}
    words = [texts[orth][:_LONGEST] for orth in distinct.tolist()]
    sizes = [len(word) for word in words]
    ids: Any = np.array([ord(letter) for word in words for letter in word], dtype="uint64")
    vectors, backprop_vectors = characters(ops.asarray(ids), is_train)
    outputs, backprop_outputs = lstm(split(vectors, sizes), is_train)
    states = ops.flatten(outputs)
    places: Any = ops.xp.asarray(inverse)
    last = ops.xp.cumsum(ops.xp.asarray(sizes)) - 1
    first = last - ops.xp.asarray(sizes) + 1
    Y = ops.xp.hstack([states[last, :half], states[first, half:]])

    def backprop(gradient: list[Floats2d]) -> list[Doc]:
        d_words = ops.alloc2f(len(words), 2 * half)
        ops.scatter_add(d_words, places, ops.flatten(gradient))
        d_states = ops.xp.zeros_like(states)
        d_states[last, :half] = d_words[:, :half]
        d_states[first, half:] = d_words[:, half:]
        backprop_vectors(ops.flatten(backprop_outputs(split(d_states, sizes))))
        return []

    return split(ops.as_contig(Y[places]), lengths), backprop

"""`spacy-elmo.KnownWords.v1`: one vector for all words that are not in the training data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from spacy.attrs import NORM
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from .bilstm import split


def KnownWords_v1(
    embed: Model[list[Doc], list[Floats2d]], dropout: float = 0.2
) -> Model[list[Doc], list[Floats2d]]:
    """Build an embedding of the words of the training data, (n_tokens, width) per Doc. All other words have one learned
    vector, which tells the network to rely on other inputs, such as characters.

    A hash embedding alone gives an unknown word the rows of other words. In training, some words get the vector of
    unknown words, as in UDPipe 2 (Straka 2018). The layer remembers the words that it has seen in training, by their
    `norm_`.

    Args:
        embed: an embedding of words, such as `spacy.MultiHashEmbed.v2`.
        dropout: share of the words that are unknown in training.
    """
    return Model(
        "known-words",
        forward,
        init=init,
        dims={"nO": embed.maybe_get_dim("nO")},
        params={"unknown": None},
        layers=[embed],
        attrs={"known": np.zeros(0, dtype="uint64"), "dropout": dropout},
    )


def init(
    model: Model[list[Doc], list[Floats2d]], X: list[Doc] | None = None, Y: Any = None
) -> None:
    """Initialize the embedding. At first, no word is known, and the vector of unknown words is 0."""
    embed = model.layers[0]
    embed.initialize(X=X)
    model.set_dim("nO", embed.get_dim("nO"))
    model.set_param("unknown", model.ops.alloc1f(model.get_dim("nO")))
    model.attrs["known"] = np.zeros(0, dtype="uint64")


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    """Compute the vectors of all words, and replace those of unknown words."""
    vectors, backprop_vectors = model.layers[0](docs, is_train)
    if not docs:
        return vectors, backprop_vectors
    lengths = [len(doc) for doc in docs]
    words = np.concatenate([doc.to_array([NORM]).reshape(-1) for doc in docs])
    if is_train:
        model.attrs["known"] = np.union1d(model.attrs["known"], words)
        unknown = np.random.random(len(words)) < model.attrs["dropout"]
    else:
        unknown = ~np.isin(words, model.attrs["known"])
    replaced = model.ops.xp.asarray(unknown)[:, None]
    rows = model.ops.xp.where(replaced, model.get_param("unknown"), model.ops.flatten(vectors))

    def backprop(gradient: list[Floats2d]) -> list[Doc]:
        d_rows = model.ops.flatten(gradient)
        model.inc_grad("unknown", (d_rows * replaced).sum(axis=0))
        return backprop_vectors(split(d_rows * ~replaced, lengths))

    return split(rows, lengths), backprop

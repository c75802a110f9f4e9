"""Two texts on one Doc, and their vectors.

The Doc has the first text, a line break and the second text. The line break is a whitespace token, which also ends a
sequence of elmo, so the biLM processes both texts separately.
"""

from collections.abc import Callable
from typing import Any

import torch
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, torch2xp, xp2torch
from thinc.types import Floats2d

Pair = tuple[Floats2d, Floats2d]
"""Vectors of the tokens before the line break, and of the tokens after it."""


def line_break(doc: Doc) -> int:
    """Return the index of the token between the two texts.

    Raises:
        ValueError: there is no line break, or no token before or after it.
    """
    breaks = (token.i for token in doc if token.is_space and "\n" in token.text)
    border = next(breaks, len(doc))
    if not 0 < border < len(doc) - 1:
        raise ValueError(
            f"{doc.text[:80]!r} is not two texts: separate the two texts by a line break"
        )
    return border


def pairs(
    vectors: Model[list[Doc], list[Floats2d]],
) -> Model[list[Doc], list[Pair]]:
    """Return a layer that outputs the vectors of both texts of each Doc."""
    return Model("pairs", forward, init=init, layers=[vectors])


def init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Initialize the layer of the vectors. Y is not used."""
    model.layers[0].initialize(X=X)


def forward(
    model: Model[list[Doc], list[Pair]], docs: list[Doc], is_train: bool
) -> tuple[list[Pair], Callable[[list[Pair]], list[Doc]]]:
    """Split the vectors at the line break. The vector of the line break is not used."""
    borders = [line_break(doc) for doc in docs]
    vectors, backprop_vectors = model.layers[0](docs, is_train)

    def backprop(d_pairs: list[Pair]) -> list[Doc]:
        d_vectors = []
        for (d_first, d_second), x in zip(d_pairs, vectors, strict=True):
            gap = model.ops.alloc2f(1, x.shape[1])
            d_vectors.append(model.ops.xp.vstack([d_first, gap, d_second]))
        return backprop_vectors(d_vectors)

    return [(x[:at], x[at + 1 :]) for x, at in zip(vectors, borders, strict=True)], backprop


def padded(
    model: Model, X: list[Pair], is_train: bool
) -> tuple[ArgsKwargs, Callable[[ArgsKwargs], list[Pair]]]:
    """Convert pairs to the arguments of a network, and their gradients to pairs.

    The arguments are the padded first texts, (batch, longest, width), their lengths, (batch,), the padded second texts
    and their lengths.
    """
    ops = model.ops
    sides = [list(side) for side in zip(*X, strict=True)]
    lengths = [[len(x) for x in side] for side in sides]
    arguments: list[torch.Tensor] = []
    for side, its in zip(sides, lengths, strict=True):
        arguments.append(xp2torch(ops.pad(side), requires_grad=is_train))
        arguments.append(torch.tensor(its))

    def unpadded(gradients: ArgsKwargs) -> list[Pair]:
        first, _, second, _ = gradients.args
        d_sides = (torch2xp(first), torch2xp(second))
        return list(zip(*map(ops.unpad, d_sides, lengths), strict=True))

    return ArgsKwargs(args=tuple(arguments), kwargs={}), unpadded

"""Parts of networks that several tasks use: a bidirectional LSTM, attention, and pairs of texts on one Doc.

In thinc's `PyTorchLSTM` the backward direction starts in the padding, so its output depends on the longest sequence of
the batch. `BiLSTM` computes each sequence independently of the others.

A pair of texts is one Doc: the first text, a line break and the second text. The line break is a whitespace token,
which also ends a sequence of elmo, so the biLM processes both texts separately.
"""

from collections.abc import Callable
from typing import Any

import torch
from spacy.tokens import Doc
from thinc.api import (
    ArgsKwargs,
    Maxout,
    Model,
    PyTorchWrapper,
    chain,
    torch2xp,
    with_array,
    xp2torch,
)
from thinc.types import Floats2d
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

SAMPLE = 10
"""Number of Docs with which a component initializes its model."""
TINY = 1e-30
"""Added to probabilities, so that the logarithm of 0 in float32 is finite."""
Pair = tuple[Floats2d, Floats2d]
"""Vectors of the tokens before the line break, and of the tokens after it."""


def reduced(
    tok2vec: Model[list[Doc], list[Floats2d]], width: int
) -> Model[list[Doc], list[Floats2d]]:
    """Return the vectors of a tok2vec, projected to a width by a Maxout layer to which `[training] dropout` applies."""
    return chain(tok2vec, with_array(Maxout(nO=width, nP=3, normalize=True, dropout=0.0)))


class BiLSTM(nn.Module):
    """A bidirectional LSTM over padded sequences. Its outputs beyond the length of a sequence are zeros.

    Args:
        nO: width of the output, both directions together.
        nI: width of the input.
        depth: number of layers.
    """

    def __init__(self, nO: int, nI: int, depth: int = 1) -> None:
        super().__init__()
        self.lstm = nn.LSTM(nI, nO // 2, depth, batch_first=True, bidirectional=True)
        for name, parameter in self.lstm.named_parameters():
            if name.startswith("weight"):
                # As in He et al. (2017). With torch's small initial values, the loss does not fall for hundreds of
                # steps.
                for gate in parameter.detach().chunk(4):
                    nn.init.orthogonal_(gate)
            else:
                nn.init.zeros_(parameter)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Compute (batch, longest, nI) -> (batch, longest, nO)."""
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.shape[1])[
            0
        ]


class WithInput(nn.Module):
    """Output and input of a layer, concatenated: [h ; x]. They replace the highway connections of He et al. (2017).

    Without a connection around the LSTM, the loss of srl did not fall below that of equal predictions for 400 steps.
    """

    def __init__(self, layer: BiLSTM) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Compute (batch, longest, nI) -> (batch, longest, nO + nI)."""
        return torch.cat([self.layer(x, lengths), x], dim=2)


def bilstm_with_input(nO: int, nI: int, depth: int) -> Model[list[Floats2d], list[Floats2d]]:
    """Return a thinc layer that concatenates the output of a `BiLSTM` and its input: (n, nI) -> (n, nO + nI)."""
    network = WithInput(BiLSTM(nO, nI, depth))
    return PyTorchWrapper(network, convert_inputs=_padded, convert_outputs=_sequences)


def _padded(
    model: Model, X: list[Floats2d], is_train: bool
) -> tuple[ArgsKwargs, Callable[[ArgsKwargs], list[Floats2d]]]:
    lengths = [len(x) for x in X]

    def unpadded(gradients: ArgsKwargs) -> list[Floats2d]:
        return model.ops.unpad(torch2xp(gradients.args[0]), lengths)

    padded = xp2torch(model.ops.pad(X), requires_grad=is_train)
    return ArgsKwargs(args=(padded, torch.tensor(lengths)), kwargs={}), unpadded


def _sequences(
    model: Model, inputs_outputs: tuple[list[Floats2d], Tensor], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], ArgsKwargs]]:
    X, written = inputs_outputs

    def padded(gradient: list[Floats2d]) -> ArgsKwargs:
        gradients = xp2torch(model.ops.pad(gradient))
        return ArgsKwargs(args=((written,),), kwargs={"grad_tensors": gradients})

    return model.ops.unpad(torch2xp(written), [len(x) for x in X]), padded


def mask(lengths: Tensor) -> Tensor:
    """Return (batch, longest) bool, True for positions with a token."""
    return torch.arange(int(lengths.max()))[None] < lengths[:, None]


def attend(similarity: Tensor, values: Tensor, present: Tensor) -> Tensor:
    """Return for each token of a sentence the mean vector of the other sentence, weighted by the softmax of similarity.

    Args:
        similarity: (batch, n, m).
        values: (batch, m, width).
        present: (batch, m) bool, false for padding.
    """
    weights = similarity.masked_fill(~present[:, None], -torch.inf).softmax(dim=2)
    return weights @ values


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


def docs_layer(
    name: str, forward: Callable[..., Any], vectors: Model[list[Doc], list[Floats2d]]
) -> Model[list[Doc], Any]:
    """Return a layer that rearranges the vectors of Docs."""

    def init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
        vectors.initialize(X=X)

    return Model(name, forward, init=init, layers=[vectors])


def pairs(vectors: Model[list[Doc], list[Floats2d]]) -> Model[list[Doc], list[Pair]]:
    """Return a layer that outputs the vectors of both texts of each Doc. That of the line break is not used."""
    return docs_layer("pairs", _split, vectors)


def _split(
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

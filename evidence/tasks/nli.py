"""Entailment as classification of pairs: `evidence.PairClassifier.v1`, a model for spaCy's `textcat`, and its scorer.

A pair is one Doc: the premise, a line break, the hypothesis. spaCy makes the break a whitespace token, which also ends
a sequence of elmo, so that the biLM reads the two apart.
"""

from collections.abc import Callable, Iterable
from typing import Any

import spacy
import torch
from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import (
    ArgsKwargs,
    Maxout,
    Model,
    PyTorchWrapper,
    Softmax,
    chain,
    torch2xp,
    with_array,
    xp2torch,
)
from thinc.types import Floats2d

from .nli_esim import Esim

Pair = tuple[Floats2d, Floats2d]


@spacy.registry.architectures("evidence.PairClassifier.v1")
def pair_classifier(
    tok2vec: Model[list[Doc], list[Floats2d]],
    hidden_width: int,
    dropout: float,
    nO: int | None = None,
) -> Model[list[Doc], Floats2d]:
    """Probabilities of labels, (n_docs, nO), by the paper's baseline: the `Esim` of Chen et al. (2017), without trees.

    Simplified: narrower, and its classifier is a Maxout layer in place of one with tanh. `tok2vec` reads the Doc, so
    its window sees a few words across the line break.

    Args:
        tok2vec: vectors of the tokens.
        hidden_width: width of the ESIM.
        dropout: within it. Elsewhere `[training] dropout` holds.
        nO: how many labels there are; null: found at `initialize`.
    """
    model: Model[list[Doc], Floats2d] = chain(
        pairs(chain(tok2vec, with_array(layer(hidden_width)))),
        PyTorchWrapper(Esim(hidden_width, dropout), convert_inputs=padded),
        layer(hidden_width),
        Softmax(nO=nO),
    )
    model.set_ref("tok2vec", tok2vec)
    return model


def layer(width: int) -> Model[Floats2d, Floats2d]:
    """Maxout, to which `[training] dropout` applies."""
    return Maxout(nO=width, nP=3, normalize=True, dropout=0.0)


def line_break(doc: Doc) -> int:
    """Index of the token between premise and hypothesis.

    Raises:
        ValueError: there is none, or nothing before or behind it.
    """
    breaks = (token.i for token in doc if token.is_space and "\n" in token.text)
    place = next(breaks, len(doc))
    if not 0 < place < len(doc) - 1:
        raise ValueError(
            f"{doc.text[:80]!r} is no pair: write the premise, a line break, the hypothesis"
        )
    return place


def pairs(
    vectors: Model[list[Doc], list[Floats2d]],
) -> Model[list[Doc], list[Pair]]:
    """The vectors of each premise and of each hypothesis."""
    return Model("pairs", forward, init=init, layers=[vectors])


def init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Initialize the vectors. Y is for what comes after."""
    model.layers[0].initialize(X=X)


def forward(
    model: Model[list[Doc], list[Pair]], docs: list[Doc], is_train: bool
) -> tuple[list[Pair], Callable[[list[Pair]], list[Doc]]]:
    """Cut at the line break, whose own vector nobody reads."""
    places = [line_break(doc) for doc in docs]
    vectors, backprop_vectors = model.layers[0](docs, is_train)

    def backprop(d_pairs: list[Pair]) -> list[Doc]:
        d_vectors = []
        for (d_premise, d_hypothesis), x in zip(d_pairs, vectors, strict=True):
            gap = model.ops.alloc2f(1, x.shape[1])
            d_vectors.append(model.ops.xp.vstack([d_premise, gap, d_hypothesis]))
        return backprop_vectors(d_vectors)

    return [(x[:at], x[at + 1 :]) for x, at in zip(vectors, places, strict=True)], backprop


def padded(
    model: Model, X: list[Pair], is_train: bool
) -> tuple[ArgsKwargs, Callable[[ArgsKwargs], list[Pair]]]:
    """Pairs as the arguments of `Esim`, and their gradients as pairs."""
    ops = model.ops
    sides = [list(side) for side in zip(*X, strict=True)]
    lengths = [[len(x) for x in side] for side in sides]
    arguments: list[torch.Tensor] = []
    for side, its in zip(sides, lengths, strict=True):
        arguments.append(xp2torch(ops.pad(side), requires_grad=is_train))
        arguments.append(torch.tensor(its))

    def unpadded(gradients: ArgsKwargs) -> list[Pair]:
        premise, _, hypothesis, _ = gradients.args
        d_sides = (torch2xp(premise), torch2xp(hypothesis))
        return list(zip(*map(ops.unpad, d_sides, lengths), strict=True))

    return ArgsKwargs(args=tuple(arguments), kwargs={}), unpadded


def score_nli(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Whether the most probable label is the right one.

    Returns:
        `nli_acc`, the share of pairs for which it is, and `nli_per_type`: precision, recall and F1 of each label.
    """
    per_type: dict[str, PRFScore] = {}
    right = total = 0
    for example in examples:
        found, gold = (max(doc.cats, key=doc.cats.__getitem__) for doc in (example.x, example.y))
        right += found == gold
        total += 1
        for label in example.y.cats:
            per_type.setdefault(label, PRFScore()).score_set({found} & {label}, {gold} & {label})
    return {
        "nli_acc": right / total if total else None,
        "nli_per_type": {label: score.to_dict() for label, score in sorted(per_type.items())},
    }


@spacy.registry.scorers("evidence.nli_scorer.v1")
def make_nli_scorer() -> Callable[..., dict[str, Any]]:
    """The scorer of an nli component."""
    return score_nli

"""`spacy-elmo.BiaffineParser.v1`: the network of the biaffine parser, which scores the arcs of a tree and their
labels."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from spacy.tokens import Doc
from thinc.api import Model, glorot_uniform_init
from thinc.types import Floats2d
from torch import Tensor

from ..bilm.kernels.matmul import matmul
from .bilstm import bilstm, split
from .spanning_tree import best_heads
from .torch_function import run

_ROWS = 512
"""Words whose labels are scored at once. The products of 512 words, 50 labels and a width of 128 take 13 MB."""


@dataclass(frozen=True)
class Sentences:
    """Input of the network: some sentences of a batch of Docs. A sentence is an array of words, in their order."""

    docs: list[Doc]
    words: list[np.ndarray]
    """The indices of the words of each sentence in the concatenated Docs. Words in no sentence are ignored."""
    heads: list[np.ndarray] | None = None
    """The head of each word, as index in its sentence: the labels of these arcs are scored. None: those of the best
    trees."""


@dataclass(frozen=True)
class Scores:
    """Output of the network for some sentences with N words, or the gradient of a loss."""

    arcs: list[Floats2d]
    """For each sentence of n words, the scores of all arcs, (n, n). `arcs[word, head]` is the score of an arc; the
    diagonal has the scores of the words as root."""
    labels: Floats2d
    """Scores of the labels of the arcs to `heads`, (N, labels)."""
    heads: list[np.ndarray]
    """The heads in the best trees, or those of the input."""


def BiaffineParser_v1(
    tok2vec: Model[list[Doc], list[Floats2d]],
    lstm_width: int = 512,
    arc_width: int = 256,
    label_width: int = 64,
    nO: int | None = None,
) -> Model[Sentences, Scores]:
    """Build the network of the `biaffine_parser`: a bidirectional LSTM over each sentence, and biaffine scores of arcs
    and labels.

    Args:
        tok2vec: the vectors of the words, (n_tokens, width) per Doc, from any embedding or listener.
        lstm_width: width of the output of the LSTM, both directions together.
        arc_width: width of the two vectors of a word from which the arcs are scored.
        label_width: width of the two vectors of a word from which the labels are scored.
        nO: number of labels, which the component sets.
    """
    return Model(
        "biaffine-parser",
        forward,
        init=init,
        layers=[tok2vec, bilstm(lstm_width)],
        dims={"nO": nO, "arc": arc_width, "label": label_width},
        params=dict.fromkeys(("W", "b", "arcs", "labels")),
        attrs={"dropout_rate": 0.0},
        refs={"tok2vec": tok2vec},
    )


def init(model: Model[Sentences, Scores], X: Sentences | None = None, Y: Any = None) -> None:
    """Initialize the layers with the Docs of X. The scores of all arcs and labels are 0 at first."""
    tok2vec, lstm = model.layers
    docs = None if X is None else X.docs
    tok2vec.initialize(X=docs)
    lstm.initialize(X=None if docs is None else tok2vec.predict(docs))
    width, arc, label = lstm.get_dim("nO"), model.get_dim("arc"), model.get_dim("label")
    ops = model.ops
    model.set_param("W", glorot_uniform_init(ops, (width, 2 * (arc + label))))
    model.set_param("b", ops.alloc1f(2 * (arc + label)))
    model.set_param("arcs", ops.alloc2f(arc + 1, arc))
    model.set_param("labels", ops.alloc3f(label + 1, model.get_dim("nO"), label + 1))


def forward(
    model: Model[Sentences, Scores], X: Sentences, is_train: bool
) -> tuple[Scores, Callable[[Scores], list[Doc]]]:
    """Compute the scores of all arcs, and of the labels of some arcs. The callback takes the gradients of both.

    For each word, a hidden layer computes four vectors from the outputs of the LSTM: two of the word as a dependent, d
    for arcs and d' for labels, and two of the word as a head, h and h'. The score of the arc from word i to head j is
    [d_i ; 1] U h_j, that of label k is [d'_i ; 1] U'_k [h'_j ; 1] (Dozat and Manning 2017). As in UDPipe 2 (Straka
    2018), the layers before the LSTM can be shared with a tagger. There is no word for the root: the arc from a word to
    itself has the score of this word as the root.

    The scores of a sentence do not depend on other sentences in the batch: in float32 on a CPU bit for bit, if the C
    functions were built and the vectors of `tok2vec` do not depend on them.
    """
    tok2vec, lstm = model.layers
    vectors, backprop_vectors = tok2vec(X.docs, is_train)
    flat = model.ops.flatten(vectors)
    lengths = [len(words) for words in X.words]
    words = model.ops.xp.asarray(np.concatenate([np.zeros(0, int), *X.words]))
    states, backprop_states = lstm(split(flat[words], lengths), is_train)
    sizes = [model.get_dim("arc"), model.get_dim("label")] * 2
    rate = model.attrs["dropout_rate"]
    heads = list(X.heads or ())

    def compute(parameters: dict[str, Tensor], x: Tensor) -> list[Tensor]:
        hidden = F.leaky_relu(matmul(x, parameters["W"], parameters["b"]), 0.1)
        hidden = F.dropout(hidden, rate, is_train)
        dependents, labelled, parents, labelling = hidden.split(sizes, 1)
        queries = matmul(_with_one(dependents), parameters["arcs"]).split(lengths)
        keys = parents.split(lengths)
        arcs = [matmul(query, key.t()) for query, key in zip(queries, keys, strict=True)]
        if X.heads is None:
            heads.extend(best_heads(scores.cpu().numpy()) for scores in arcs)
        starts = itertools.accumulate(lengths, initial=0)
        rows = np.concatenate([start + own for start, own in zip(starts, heads, strict=False)])
        labelling = labelling.index_select(0, torch.from_numpy(rows).to(x.device))
        return [*arcs, _label_scores(labelled, labelling, parameters["labels"])]

    def backprop(gradient: Scores) -> list[Doc]:
        d_flat = model.ops.xp.zeros_like(flat)
        if lengths:
            [d_states] = backprop_scores([*gradient.arcs, gradient.labels])
            d_flat[words] = model.ops.flatten(backprop_states(split(d_states, lengths)))
        return backprop_vectors(split(d_flat, [len(own) for own in vectors]))

    if not lengths:
        return Scores([], model.ops.alloc2f(0, model.get_dim("nO")), []), backprop
    [*arcs, labels], backprop_scores = run(model, compute, [model.ops.flatten(states)], is_train)
    return Scores(arcs, labels, heads), backprop


def _label_scores(dependents: Tensor, heads: Tensor, weight: Tensor) -> Tensor:
    """Return the scores of all labels for pairs of a dependent and a head, (pairs, labels)."""
    inputs, labels, _ = weight.shape
    pairs = zip(_with_one(dependents).split(_ROWS), _with_one(heads).split(_ROWS), strict=True)
    return torch.cat(
        [
            (matmul(own, weight.view(inputs, -1)).view(-1, labels, inputs) * head[:, None]).sum(2)
            for own, head in pairs
        ]
    )


def _with_one(vectors: Tensor) -> Tensor:
    """Append a 1 to each vector, so that a product with a matrix has a bias."""
    return F.pad(vectors, (0, 1), value=1.0)

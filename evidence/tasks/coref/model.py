"""`evidence.SpanRanker.v1`: a model of the spans of each Doc that may be mentions, and of the scores of antecedents."""

from collections.abc import Callable
from typing import Any, NamedTuple

import spacy
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
from thinc.types import Floats2d, Ints1d, Ints2d

from spacy_elmo.pipeline.encode.spans import rule_spans

from .ranker import RankedSpans, SpanRanker


class Ranking(NamedTuple):
    """`RankedSpans` as arrays."""

    starts: Ints1d
    ends: Ints1d
    antecedents: Ints2d
    scores: Floats2d


@spacy.registry.architectures("evidence.SpanRanker.v1")
def span_ranker(
    tok2vec: Model[list[Doc], list[Floats2d]],
    hidden_width: int,
    max_span_width: int,
    spans_per_word: float,
    antecedents: int,
    dropout: float,
) -> Model[list[Doc], list[Ranking]]:
    """Return a model that ranks spans with the baseline of the paper, the `SpanRanker` of Lee et al. (2017).

    It is simplified: it is narrower, has no features of speaker and genre, and keeps spans that cross better ones. It
    has the coarse pruning of Lee et al. (2018), which makes it fast enough for a CPU.

    Args:
        tok2vec: model of the vectors of tokens.
        hidden_width: width of the ranker.
        max_span_width: longest span in tokens. Longer mentions are never predicted.
        spans_per_word: number of kept spans per word.
        antecedents: number of antecedents of each span after the coarse pruning.
        dropout: dropout rate in the ranker. The rest of the model has `[training] dropout`.
    """
    ranker = SpanRanker(hidden_width, max_span_width, spans_per_word, antecedents, dropout)
    reduce = with_array(Maxout(nO=hidden_width, nP=3, normalize=True, dropout=0.0))
    model: Model[list[Doc], list[Ranking]] = chain(
        sentences(chain(tok2vec, reduce)),
        PyTorchWrapper(ranker, convert_inputs=to_torch, convert_outputs=from_torch),
    )
    model.set_ref("tok2vec", tok2vec)
    return model


def sentences(
    vectors: Model[list[Doc], list[Floats2d]],
) -> Model[list[Doc], list[list[Floats2d]]]:
    """Return a layer that outputs the vectors of each sentence of each Doc. The sentence rule is that of elmo, which
    uses no annotation."""
    return Model("sentences", forward, init=init, layers=[vectors])


def init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Initialize the layer of the vectors. Y is not used."""
    model.layers[0].initialize(X=X)


def forward(
    model: Model[list[Doc], list[list[Floats2d]]], docs: list[Doc], is_train: bool
) -> tuple[list[list[Floats2d]], Callable[[list[list[Floats2d]]], list[Doc]]]:
    """Split the vectors by sentence. The backward pass joins their gradients."""
    vectors, backprop_vectors = model.layers[0](docs, is_train)

    def backprop(d_cut: list[list[Floats2d]]) -> list[Doc]:
        return backprop_vectors([model.ops.xp.vstack(parts) for parts in d_cut])

    cut = [
        [x[span.start : span.end] for span in spans]
        for x, spans in zip(vectors, rule_spans(docs), strict=True)
    ]
    return cut, backprop


def to_torch(
    model: Model, X: list[list[Floats2d]], is_train: bool
) -> tuple[ArgsKwargs, Callable[[ArgsKwargs], list[list[Floats2d]]]]:
    """Convert sentences to the argument of `SpanRanker`, and their gradients to arrays."""
    tensors = [[xp2torch(x, requires_grad=is_train) for x in document] for document in X]

    def back(gradients: ArgsKwargs) -> list[list[Floats2d]]:
        return [[torch2xp(d, ops=model.ops) for d in document] for document in gradients.args[0]]

    return ArgsKwargs(args=(tensors,), kwargs={}), back


def from_torch(
    model: Model, inputs_outputs: tuple[Any, list[RankedSpans]], is_train: bool
) -> tuple[list[Ranking], Callable[[list[Floats2d]], ArgsKwargs]]:
    """Convert the output of `SpanRanker` to arrays, and the gradients of its scores to tensors."""
    _, ranked = inputs_outputs
    rankings = [
        Ranking(*(torch2xp(part.detach(), ops=model.ops) for part in each)) for each in ranked
    ]

    def back(d_scores: list[Floats2d]) -> ArgsKwargs:
        gradients = [xp2torch(d) for d in d_scores]
        scores: list[torch.Tensor] = [each.scores for each in ranked]
        return ArgsKwargs(args=(scores,), kwargs={"grad_tensors": gradients})

    return rankings, back

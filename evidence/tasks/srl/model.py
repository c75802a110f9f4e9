"""`evidence.PredicateTagger.v1`: a model of tags for the tokens of a sentence, once for each of its predicates."""

from collections.abc import Callable
from typing import Any

import spacy
from spacy.tokens import Doc
from thinc.api import Maxout, Model, Softmax, chain, with_array
from thinc.types import Floats2d

from ..bilstm import bilstm_with_input
from .annotation import predicates

REACH = 4
PLACES = 2 * REACH + 1


@spacy.registry.architectures("evidence.PredicateTagger.v1")
def predicate_tagger(
    tok2vec: Model[list[Doc], list[Floats2d]], hidden_width: int, depth: int
) -> Model[list[Doc], list[Floats2d]]:
    """Return a model of tag probabilities, (n_tokens, n_tags) for each predicate, in the order of Docs and predicates.

    As in He et al. (2017), whose deep LSTM is the paper's baseline, a bidirectional LSTM processes the sentence once
    for each predicate, with a mark of the predicate. The model is simplified, for minutes of training instead of
    hundreds of epochs: it has `depth` layers instead of 8, after a `tok2vec` that all predicates share. The input of
    each token also has the vector of the predicate and the distance from it (Collobert et al. 2011).

    Args:
        tok2vec: model of the vectors of tokens.
        hidden_width: width of the output of the LSTM, both directions together. The vectors of a token and of its
            predicate each have half of this width.
        depth: number of LSTM layers.
    """
    width = hidden_width // 2
    model: Model[list[Doc], list[Floats2d]] = chain(
        seen_from_predicates(chain(tok2vec, layer(width))),
        bilstm_with_input(hidden_width, 2 * width + PLACES, depth),
        layer(hidden_width),
        with_array(Softmax()),
    )
    model.set_ref("tok2vec", tok2vec)
    return model


def layer(width: int) -> Model[list[Floats2d], list[Floats2d]]:
    """Return a Maxout layer to which `[training] dropout` applies."""
    return with_array(Maxout(nO=width, nP=3, normalize=True, dropout=0.0))


def seen_from_predicates(
    tok2vec: Model[list[Doc], list[Floats2d]],
) -> Model[list[Doc], list[Floats2d]]:
    """Return a layer that outputs [token ; predicate ; place] for the tokens of a Doc, once for each of its predicates.

    The place is the one-hot position of the token relative to the predicate, with `PLACES` columns. The middle column
    is the predicate itself; the first and last columns are for all tokens farther away.
    """
    return Model("seen-from-predicates", forward, init=init, layers=[tok2vec])


def init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Initialize the layer of the vectors. Y is not used."""
    model.layers[0].initialize(X=X)


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    """Compute the vectors for all predicates. The backward pass adds the gradients of the predicates of a Doc."""
    xp = model.ops.xp
    vectors, backprop_vectors = model.layers[0](docs, is_train)
    places = [(row, index) for row, doc in enumerate(docs) for index in predicates(doc)]
    views = []
    for row, index in places:
        tokens = vectors[row]
        distance = xp.arange(len(tokens)) - index
        place = xp.eye(PLACES, dtype="f")[distance.clip(-REACH, REACH) + REACH]
        views.append(xp.hstack([tokens, xp.broadcast_to(tokens[index], tokens.shape), place]))

    def backprop(d_views: list[Floats2d]) -> list[Doc]:
        d_vectors = [model.ops.alloc2f(*tokens.shape) for tokens in vectors]
        for (row, index), d_view in zip(places, d_views, strict=True):
            width = vectors[row].shape[1]
            d_vectors[row] += d_view[:, :width]
            d_vectors[row][index] += d_view[:, width : 2 * width].sum(axis=0)
        return backprop_vectors(d_vectors)

    return views, backprop

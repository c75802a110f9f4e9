"""`evidence.PairClassifier.v1`: a model for spaCy's `textcat` that classifies pairs of texts, here for entailment.

A pair is one Doc (see `pairs`): the premise, a line break, the hypothesis.
"""

import spacy
from spacy.tokens import Doc
from thinc.api import (
    Maxout,
    Model,
    PyTorchWrapper,
    Softmax,
    chain,
    with_array,
)
from thinc.types import Floats2d

from ..pairs import padded, pairs
from .esim import Esim


@spacy.registry.architectures("evidence.PairClassifier.v1")
def pair_classifier(
    tok2vec: Model[list[Doc], list[Floats2d]],
    hidden_width: int,
    dropout: float,
    nO: int | None = None,
) -> Model[list[Doc], Floats2d]:
    """Return a model of label probabilities, (n_docs, nO). It has the paper's baseline, the ESIM of Chen et al. (2017).

    It is simplified: it has no trees, is narrower, and classifies with a Maxout layer instead of tanh. The input of
    `tok2vec` is the whole Doc, so its window includes a few words across the line break.

    Args:
        tok2vec: model of the vectors of tokens.
        hidden_width: width of the ESIM.
        dropout: dropout rate in the ESIM. The rest of the model has `[training] dropout`.
        nO: number of labels; null: `initialize` determines it.
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
    """Return a Maxout layer to which `[training] dropout` applies."""
    return Maxout(nO=width, nP=3, normalize=True, dropout=0.0)

"""Entailment as classification of pairs: `evidence.PairClassifier.v1`, a model for spaCy's `textcat`, and its scorer.

A pair is one Doc, as of `pairs`: the premise, a line break, the hypothesis.
"""

from collections.abc import Callable, Iterable
from typing import Any

import spacy
from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import (
    Maxout,
    Model,
    PyTorchWrapper,
    Softmax,
    chain,
    with_array,
)
from thinc.types import Floats2d

from .nli_esim import Esim
from .pairs import padded, pairs


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

"""numpy's matrix products for one pipeline. spaCy uses those of blis, which are slower on most processors."""

from __future__ import annotations

from collections.abc import Callable

from spacy.language import Language
from thinc.api import Model, NumpyOps


def numpy_products_v1() -> Callable[[Language], Language]:
    """Return the callback `numpy_products`, for `@callbacks = "spacy-elmo.numpy_products.v1"` at
    `[nlp.after_pipeline_creation]` in a config."""
    return numpy_products


def numpy_products(nlp: Language) -> Language:
    """Let numpy multiply the matrices of this pipeline. Other pipelines of the process keep their products.

    Only plain `NumpyOps` are replaced: on a GPU and on Apple's processors, thinc has faster products of its own.
    """
    ops = NumpyOps(use_blis=False)
    for _, component in nlp.components:
        model = getattr(component, "model", None)
        for node in model.walk() if isinstance(model, Model) else ():
            if type(node.ops) is NumpyOps:
                node.ops = ops
    return nlp

"""The batch of Docs in a training step. All listeners of an `elmo` component use the same layers of these
Docs, and the batch adds up the gradients from the listeners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.api import get_array_module
from thinc.types import Floats3d

# No weights have this version, so it excludes all layers except those that a user has set.
NO_VERSION = ""


class TrainingBatch:
    """The Docs of a training step, their layers, and the sum of the listeners' gradients of these layers.

    Listeners do not run the backward pass of the biLM. `LayerSource.backward` runs it after all listeners
    have added their gradients. So no gradient is lost if a listener is disabled, excluded or without gold
    annotation.

    A Doc is recognized by the id of the Python object. The batch keeps a reference to the Doc, so no new
    object can get the same id.
    """

    def __init__(self, docs: Sequence[Doc]) -> None:
        self.docs = {id(doc): doc for doc in docs}
        self.version = NO_VERSION
        """Identifier of the weights that computed the layers (see `BiLMShim.version`)."""
        self.layers: dict[int, Floats3d] | None = None
        self.backprop: Callable[[list[Any]], Any] | None = None
        self.gradient: dict[int, Any] = {}

    def originals(self, copies: Sequence[Doc]) -> list[Doc]:
        """For each copy, return the Doc of this batch that has the same words, or the copy if there is no
        such Doc."""
        by_words = {_words(doc): doc for doc in self.docs.values()}
        return [by_words.get(_words(doc), doc) for doc in copies]

    def fill(self, docs: Sequence[Doc], layers: Sequence[Floats3d], backprop: Any = None) -> None:
        """Set the layers of the Docs, and the function for the backward pass. `backprop` takes a list with
        the gradient of the layers of each Doc; None: no backward pass."""
        self.layers = {id(doc): array for doc, array in zip(docs, layers, strict=True)}
        self.backprop = backprop

    def layers_of(self, doc: Doc) -> Floats3d | None:
        """Return the layers of a Doc; None if the batch has no layers for the Doc, or if the Doc's number of
        tokens has changed."""
        layers = (self.layers or {}).get(id(doc))
        return layers if layers is not None and layers.shape[1] == len(doc) else None

    def add_gradient(self, layers: Sequence[Floats3d], gradients: Sequence[Floats3d]) -> None:
        """Add a listener's gradients, one for each array of layers. Arrays that are not from this batch are
        skipped."""
        own = {id(array): array for array in (self.layers or {}).values()}
        for array, gradient in zip(layers, gradients, strict=True):
            if id(array) in own:
                if not self.gradient:
                    xp = get_array_module(gradient)
                    self.gradient = {n: xp.zeros(a.shape, dtype="float32") for n, a in own.items()}
                self.gradient[id(array)] += gradient

    def backward(self) -> float:
        """If a listener has added a gradient, run the backward pass. Return the sum of the squared elements
        of the gradient; 0 if no backward pass has run."""
        gradient = list(self.gradient.values())
        if self.backprop is None or not gradient:
            return 0.0
        self.backprop(gradient)
        return float(sum((array**2).sum() for array in gradient))


def _words(doc: Doc) -> bytes:
    return doc.to_array(ORTH).tobytes()

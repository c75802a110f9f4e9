"""The batch of Docs in a training step. All listeners of an `elmo` component use the same layers of these
Docs, and the batch adds up the gradients from the listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spacy.tokens import Doc
from thinc.api import get_array_module
from thinc.types import Floats3d

from .store.extensions import starts_of

# No weights have this version, so it excludes all layers except those that a user has set.
NO_VERSION = ""


class TrainingBatch:
    """The Docs of a training step, their layers, and the sum of the listeners' gradients of these layers.

    Listeners do not run the backward pass of the biLM. `LayerSource.backward` runs it after all listeners
    have added their gradients. So no gradient is lost if a listener is disabled, excluded or without gold
    annotation.

    A Doc is recognized by a number that is stored on the Doc (see `StoredLayers.sources`). Copies of the Doc,
    on which an `EntityLinker` trains, have the same number.

    Args:
        docs: the Docs by their numbers.
    """

    def __init__(self, docs: Mapping[int, Doc]) -> None:
        self.docs = docs
        self.version = NO_VERSION
        """Identifier of the weights that computed the layers (see `BiLMShim.version`)."""
        self.layers: dict[int, Floats3d] | None = None
        self.backprop: Callable[[list[Any]], Any] | None = None
        self.gradient: dict[int, Any] = {}
        self._starts: dict[int, Any] = {}

    def fill(
        self, numbers: Iterable[int], layers: Sequence[Floats3d], backprop: Any = None
    ) -> None:
        """Set the layers of the Docs with these numbers, and the function for the backward pass. `backprop`
        takes a list with the gradient of the layers of each Doc; None: no backward pass."""
        self.layers = dict(zip(numbers, layers, strict=True))
        self.backprop = backprop
        self._starts = {number: starts_of(self.docs[number]) for number in self.layers}

    def layers_of(self, number: int, doc: Doc) -> Floats3d | None:
        """Return the layers of the Doc with this number; None if the batch has no layers for the Doc, or if the
        Doc was retokenized."""
        layers = (self.layers or {}).get(number)
        if layers is None or layers.shape[1] != len(doc):
            return None
        return layers if (self._starts[number] == starts_of(doc)).all() else None

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

"""The batch that an elmo component and its listeners share during an update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.api import Ops, get_array_module
from thinc.types import Floats3d


class ListenerBatch:
    """The Docs of an update, their layers, and one buffer into which every listener adds its gradient.

    No listener counts as the last one, and none runs the backward pass: the component does (`backprop`), after all
    listeners have added their gradients. So no gradient is lost if one of them is disabled, excluded or without gold.

    A Doc is recognized by its identity, which is safe because the batch keeps a reference to it: a hash of its words
    would not distinguish another batch of the same words, and the id alone may be given to a new object.

    A batch belongs to one update only: it copies and pickles as None.

    Args:
        docs: the Docs of the update.
        compute: returns their layers, and the backward pass if the biLM is trained; called when the first listener
            requires the layers.
    """

    def __init__(
        self,
        docs: Sequence[Doc],
        compute: Callable[[list[Doc]], tuple[list[Floats3d], Callable | None]],
    ) -> None:
        self._docs = list(docs)
        self._index = {id(doc): index for index, doc in enumerate(self._docs)}
        self._by_words: dict[bytes, Doc] | None = None
        self._compute = compute
        self._layers: list[Floats3d] | None = None
        self._backprop: Callable | None = None
        self._gradient: list[Any] | None = None

    @classmethod
    def zeros(cls, docs: Sequence[Doc], ops: Ops, layers: int, width: int) -> ListenerBatch:
        """Make a batch of the Docs of `initialize`, with zeros as their layers.

        The surrounding thinc layers predict on these Docs to infer the shape of their input. Real layers cannot always
        be computed: no component has run on the Docs, so they have no sentences for `get_spans`.
        """
        zeros = [ops.alloc3f(layers, len(doc), width) for doc in docs]
        return cls(docs, lambda _: (zeros, None))

    def original(self, copied: Doc) -> Doc:
        """Return the Doc of this batch that has the same words as a copy; the copy itself if there is none."""
        if self._by_words is None:
            self._by_words = {_words(doc): doc for doc in self._docs}
        return self._by_words.get(_words(copied), copied)

    def layers_of(self, doc: Doc) -> Floats3d | None:
        """Return the layers of a Doc of this batch; None for any other Doc, and for one whose tokens have changed."""
        if id(doc) not in self._index:
            return None
        if self._layers is None:
            self._layers, self._backprop = self._compute(self._docs)
        layers = self._layers[self._index[id(doc)]]
        return layers if layers.shape[1] == len(doc) else None

    @property
    def was_read(self) -> bool:
        """True if a listener has required the layers."""
        return self._layers is not None

    @property
    def trained(self) -> bool:
        """True if there is a backward pass for gradients. Valid once a listener has required the layers."""
        return self._backprop is not None

    def add_gradient(self, doc: Doc, gradient: Floats3d) -> None:
        """Add a listener's gradient with respect to the layers of a Doc of this batch."""
        if self._backprop is None or self._layers is None:
            return
        if self._gradient is None:
            xp = get_array_module(gradient)
            self._gradient = [xp.zeros(layers.shape, dtype="float32") for layers in self._layers]
        self._gradient[self._index[id(doc)]] += gradient

    def backprop(self) -> float:
        """Run the backward pass with the summed gradients, once. Return their sum of squares, spaCy's loss of elmo."""
        gradient, backprop = self._gradient, self._backprop
        self._gradient = self._backprop = None
        if gradient is None or backprop is None:
            return 0.0
        backprop(gradient)
        return float(sum((g**2).sum() for g in gradient))

    def __deepcopy__(self, memo: Any) -> None:
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


def _words(doc: Doc) -> bytes:
    return doc.to_array(ORTH).tobytes()

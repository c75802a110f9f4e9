"""What an elmo component and its listeners share about the batch in training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.api import Ops, get_array_module
from thinc.types import Floats3d


class ListenerBatch:
    """The Docs of an update, their layers, and one buffer into which every listener adds its gradient.

    No listener is the last one, and none runs the backward pass: the component does (`backprop`), when all who
    want to have added theirs. So a listener that is disabled, excluded or without gold takes nothing from the others.

    A Doc is recognised by its identity, which is safe because the batch holds it: a hash of its words would
    take another batch of the same words for this one, and an id alone is given to new objects again.

    A batch belongs to the update that is under way: it copies and pickles as None.

    Args:
        docs: the Docs of the update.
        read: gives their layers, and the backward pass if the biLM is trained; called at the first listener's asking.
    """

    def __init__(
        self,
        docs: Sequence[Doc],
        read: Callable[[list[Doc]], tuple[list[Floats3d], Callable | None]],
    ) -> None:
        self._docs = list(docs)
        self._place = {id(doc): place for place, doc in enumerate(self._docs)}
        self._by_words: dict[bytes, Doc] | None = None
        self._read = read
        self._layers: list[Floats3d] | None = None
        self._backprop: Callable | None = None
        self._gradient: list[Any] | None = None

    @classmethod
    def sample(cls, docs: Sequence[Doc], ops: Ops, layers: int, width: int) -> ListenerBatch:
        """The Docs of `initialize`, which the layers around now predict, to learn the shape of what comes out.
        They have zeros, because not every Doc's layers can be had: no component has run on these, so they have no
        sentences for `get_spans`."""
        zeros = [ops.alloc3f(layers, len(doc), width) for doc in docs]
        return cls(docs, lambda _: (zeros, None))

    def original(self, copied: Doc) -> Doc:
        """The Doc of this batch that has the same words as a copy; the copy itself if there is none."""
        if self._by_words is None:
            self._by_words = {_words(doc): doc for doc in self._docs}
        return self._by_words.get(_words(copied), copied)

    def layers_of(self, doc: Doc) -> Floats3d | None:
        """The layers of a Doc of this batch; None for any other Doc, and for one whose tokens have changed since."""
        if id(doc) not in self._place:
            return None
        if self._layers is None:
            self._layers, self._backprop = self._read(self._docs)
        layers = self._layers[self._place[id(doc)]]
        return layers if layers.shape[1] == len(doc) else None

    @property
    def read(self) -> bool:
        """Whether a listener has come for the layers."""
        return self._layers is not None

    @property
    def trained(self) -> bool:
        """Whether gradients are of use. Known once the batch is read."""
        return self._backprop is not None

    def add_gradient(self, doc: Doc, gradient: Floats3d) -> None:
        """Add one listener's gradient of the layers of a Doc of this batch."""
        if self._backprop is None or self._layers is None:
            return
        if self._gradient is None:
            xp = get_array_module(gradient)
            self._gradient = [xp.zeros(layers.shape, dtype="float32") for layers in self._layers]
        self._gradient[self._place[id(doc)]] += gradient

    def backprop(self) -> float:
        """Run the backward pass with all that was added, once. The sum of squares, which spaCy shows as the loss."""
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

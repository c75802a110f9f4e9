"""The layers of training Docs, kept from one epoch to the next while the biLM is frozen."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.types import Floats3d

from ..bilm.model import BiLM
from .sequences import spans_of
from .spans import SpanGetter, rule_spans


class LayerCache:
    """Layers by what they follow from: the words of a Doc, its spans, and the biLM. The least recently used go first.

    Training sees its Docs in new copies at every epoch, so the Docs themselves cannot carry them. It copies and
    pickles as an empty cache of the same size.

    Args:
        megabytes: how much it may hold; 0: nothing.
    """

    def __init__(self, megabytes: float) -> None:
        self.megabytes = megabytes
        self._layers: OrderedDict[bytes, Floats3d] = OrderedDict()
        self._bytes = 0
        self._bilm: weakref.ref[BiLM] | None = None

    def keys(self, docs: Sequence[Doc], get_spans: SpanGetter) -> list[bytes]:
        """What the layers of each Doc follow from.

        Raises:
            ValueError: see `spans_of`.
        """
        words = [doc.to_array(ORTH).tobytes() for doc in docs]
        if get_spans is rule_spans:
            return words  # it reads the words alone
        borders = [
            np.array([(span.start, span.end) for span in spans], dtype=np.int64).tobytes()
            for spans in spans_of(docs, get_spans)
        ]
        sizes = [len(own).to_bytes(8, "little") for own in words]
        return [b"".join(parts) for parts in zip(sizes, words, borders, strict=True)]

    def get(self, key: bytes, bilm: BiLM) -> Floats3d | None:
        """The layers under a key; None: they are not there, or they are another network's."""
        if self._bilm is None or self._bilm() is not bilm:
            self.clear()
            self._bilm = weakref.ref(bilm)
        if key not in self._layers:
            return None
        self._layers.move_to_end(key)
        return self._layers[key]

    def put(self, key: bytes, layers: Floats3d) -> None:
        """Keep the layers under a key, and let others go if there is no room."""
        if layers.nbytes > self.megabytes * 1e6 or key in self._layers:
            return
        self._layers[key] = layers
        self._bytes += layers.nbytes
        while self._bytes > self.megabytes * 1e6:
            self._bytes -= self._layers.popitem(last=False)[1].nbytes

    def clear(self) -> None:
        """Forget everything."""
        self._layers.clear()
        self._bytes = 0

    def __deepcopy__(self, memo: Any) -> LayerCache:
        return LayerCache(self.megabytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return LayerCache, (self.megabytes,)

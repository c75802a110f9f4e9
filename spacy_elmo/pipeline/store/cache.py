"""Cache of the layers of Docs, for training runs with a frozen biLM and with the same Docs in every epoch."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.types import Floats3d

from ...digest import Digest
from ..encode.spans import rule_spans, spans_of
from ..factory_options import SpanGetter

# Approximate memory of an entry without its layers.
_ENTRY_BYTES = 200

# One lock for all caches, because an attribute that is a lock cannot be copied, and so that a forked process can
# replace it.
_lock = threading.Lock()


def renew_lock() -> None:
    """Replace the lock. A forked process does this, because another thread of its parent may have held it."""
    global _lock
    _lock = threading.Lock()


class LayerCache:
    """A cache of recently used layers of Docs (see `keys_of`). A change of the weights empties the cache.

    The Docs themselves cannot keep their layers, because training makes new copies of the Docs in every
    epoch. A copied or unpickled cache is empty, but has the same size limit. Several threads can use a cache
    at once.

    Args:
        megabytes: size limit of the cache; 0: store no layers.
    """

    def __init__(self, megabytes: float) -> None:
        self.megabytes = megabytes
        self.in_use = False
        """True if training has begun, so that predicted Docs may be dev Docs, which come again."""
        self._version, self._bytes = "", 0
        self._layers: OrderedDict[bytes, Floats3d] = OrderedDict()

    def find(self, keys: Sequence[bytes], version: str) -> list[Any]:
        """Return the layers for each key; None if they are not cached. `version` identifies the current weights
        (see `BiLMShim.version`): layers of other weights are removed."""
        with _lock:
            if self._version != version:
                self._version, self._bytes = version, 0
                self._layers.clear()
            found = [self._layers.get(key) for key in keys]
            for key, layers in zip(keys, found, strict=True):
                if layers is not None:
                    self._layers.move_to_end(key)
            return found

    def add(
        self, keys: Sequence[bytes], layers: Sequence[Floats3d], version: str, *, evict: bool
    ) -> None:
        """Add the layers that the weights `version` have computed, if these are still the weights of the cache.

        Args:
            evict: remove the least recently used layers if space is needed. If false, store only what fits.
        """
        capacity = self.megabytes * 1e6
        with _lock:
            for key, array in zip(keys, layers, strict=True):
                size = _ENTRY_BYTES + array.nbytes
                if self._version != version or key in self._layers:
                    continue
                if size > (capacity if evict else capacity - self._bytes):
                    continue
                self._layers[key] = array
                self._bytes += size
                while self._bytes > capacity:
                    self._bytes -= _ENTRY_BYTES + self._layers.popitem(last=False)[1].nbytes

    def __reduce__(self) -> tuple[Any, ...]:
        return LayerCache, (self.megabytes,)


def keys_of(docs: Sequence[Doc], get_spans: SpanGetter | None) -> list[bytes]:
    """Return the key of each Doc: a hash of 16 bytes over the words and spans of the Doc. These and the
    weights determine the layers."""
    # The hash of a word is the same in every vocabulary and every process.
    words = [doc.to_array(ORTH).tobytes() for doc in docs]
    if get_spans in (None, rule_spans):
        return [Digest(orths).digest() for orths in words]  # these spans depend only on the words
    borders = [
        np.array([(span.start, span.end) for span in spans], dtype=np.int64).tobytes()
        for spans in spans_of(docs, get_spans)
    ]
    sizes = [len(orths).to_bytes(8, "little") for orths in words]
    return [Digest(b"".join(parts)).digest() for parts in zip(sizes, words, borders, strict=True)]

"""The layers of training Docs, kept from one epoch to the next for as long as the biLM stays as it is."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ..reading.encoder import shim_of
from ..reading.sequences import spans_of
from ..reading.spans import SpanGetter, rule_spans
from .layer_files import LayerFiles

# What an entry costs beside its layers.
_ENTRY_BYTES = 200


class LayerCache:
    """Layers by what they follow from: the words of a Doc, its spans, the weights. The least recently used go first.

    Training sees its Docs in new copies at every epoch, so the Docs themselves cannot carry them. It copies and
    pickles as an empty cache of the same size and folder. Several threads may read.

    Args:
        megabytes: how much memory it may hold; 0: nothing.
        folder: where everything is kept as well; None: nowhere.
    """

    def __init__(self, megabytes: float, folder: str | None = None) -> None:
        self.megabytes = megabytes
        self.folder = folder
        # None stands for layers that are to be kept when they are next computed.
        self._entries: OrderedDict[bytes, Floats3d | None] = OrderedDict()
        self._bytes = 0
        self._version: object = None
        self._files: LayerFiles | None = None
        self._lock = threading.Lock()

    @property
    def in_use(self) -> bool:
        """Whether memory holds anything, as it only does where somebody trains."""
        return bool(self._entries)

    def read(
        self, model: Model[list[Doc], list[Floats3d]], docs: Sequence[Doc], *, keep: bool
    ) -> list[Floats3d]:
        """The layers of Docs, computed where they are not there. Not to be changed: the next epoch reads them too.

        Args:
            model: a `BiLM_v1` model.
            keep: those computed, for the next time; else only those that `expect` has named.

        Raises:
            OSError: the folder cannot be written.
            ValueError: see `spans_of`.
        """
        if not self.megabytes and self.folder is None:
            return model.predict(list(docs))
        keys = self._keys(model, docs)
        layers: list[Any] = [self._get(key, model) for key in keys]
        missing = [place for place, found in enumerate(layers) if found is None]
        computed = model.predict([docs[place] for place in missing])
        for place, found in zip(missing, computed, strict=True):
            layers[place] = found
            if keep or keys[place] in self._entries:
                self._put(keys[place], found)
                if self._files is not None:
                    self._files.write(keys[place], model.ops.to_numpy(found))
        return layers

    def mark_training(self, model: Model[list[Doc], list[Floats3d]], docs: Sequence[Doc]) -> None:
        """Say that Docs are in training, so that their layers are kept when they are next computed."""
        for key in self._keys(model, docs) if self.megabytes else ():
            if key not in self._entries:
                self._put(key, None)

    def _keys(self, model: Model, docs: Sequence[Doc]) -> list[bytes]:
        """What the layers of each Doc follow from. Those of other weights are forgotten here."""
        shim, options = shim_of(model), model.attrs["options"]
        shim.bilm  # noqa: B018 - loads
        if self._version is not shim.version:
            with self._lock:
                self._entries.clear()
                self._bytes = 0
                if self.folder is not None:
                    kind = f"{options.dtype}-{shim.checksum()}"
                    self._files = LayerFiles(self.folder, kind)
                # Last, because other threads look at this alone.
                self._version = shim.version
        return keys_of(docs, options.get_spans)

    def _get(self, key: bytes, model: Model) -> Floats3d | None:
        with self._lock:
            if (found := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
                return found
        read: Any = None if self._files is None else self._files.read(key)
        if read is None:
            return None
        layers = model.ops.asarray3f(read, dtype=read.dtype)
        self._put(key, layers)
        return layers

    def _put(self, key: bytes, layers: Floats3d | None) -> None:
        """Take in an entry, and let others go if there is no room."""
        room = self.megabytes * 1e6
        if _size(layers) > room:
            return
        with self._lock:
            if key in self._entries:
                self._bytes -= _size(self._entries.pop(key))
            self._entries[key] = layers
            self._bytes += _size(layers)
            while self._bytes > room:
                self._bytes -= _size(self._entries.popitem(last=False)[1])

    def __deepcopy__(self, memo: Any) -> LayerCache:
        return LayerCache(self.megabytes, self.folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return LayerCache, (self.megabytes, self.folder)


def keys_of(docs: Sequence[Doc], get_spans: SpanGetter) -> list[bytes]:
    """What the layers of each Doc follow from, the weights apart: 16 bytes.

    Raises:
        ValueError: see `spans_of`.
    """
    # Numbers of words, which are equal for equal words in every vocabulary and every process.
    words = [doc.to_array(ORTH).tobytes() for doc in docs]
    if get_spans is rule_spans:
        return [blake2b(own, digest_size=16).digest() for own in words]  # it reads the words alone
    borders = [
        np.array([(span.start, span.end) for span in spans], dtype=np.int64).tobytes()
        for spans in spans_of(docs, get_spans)
    ]
    sizes = [len(own).to_bytes(8, "little") for own in words]
    return [
        blake2b(b"".join(parts), digest_size=16).digest()
        for parts in zip(sizes, words, borders, strict=True)
    ]


def _size(layers: Floats3d | None) -> int:
    return _ENTRY_BYTES + (0 if layers is None else layers.nbytes)

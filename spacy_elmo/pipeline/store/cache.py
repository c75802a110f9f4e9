"""Cache of the layers of Docs, for training runs with a frozen biLM and with the same Docs in every epoch.

The cache is in memory. A folder can also store the layers, so that other training runs can use them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.api import Model, Ops
from thinc.types import Floats3d

from ...about import __version__
from ...digest import Digest
from ...files import atomic_write
from ..encode.encoder import shim_of
from ..encode.spans import rule_spans, spans_of
from ..factory_options import SpanGetter

# Approximate memory of an entry without its layers.
_ENTRY_BYTES = 200
MOST_KEYS = 200_000
"""Number of Docs after which the cache remembers no more Docs. The keys of so many Docs need about 20
megabytes."""
_DIGEST_BYTES = Digest().digest_size


class LayerCache:
    """A cache of recently used layers of Docs. The key of a Doc is a hash of its words and of the positions
    of the spans that the biLM processes. A change of the weights empties the cache.

    The Docs themselves cannot keep their layers, because training makes new copies of the Docs in every
    epoch. A copied or unpickled cache is empty, but has the same size limit and folder. Several threads can
    use a cache at once.

    Args:
        megabytes: size limit of the cache in memory; 0: store no layers in memory.
        folder: folder in which layers are also stored, if the biLM is frozen; None: no folder.
    """

    def __init__(self, megabytes: float, folder: str | None = None) -> None:
        self.megabytes = megabytes
        self.folder = folder
        self._entries = _Entries("", None, 0)
        self._lock = threading.Lock()

    @property
    def in_use(self) -> bool:
        """True if training Docs have used the cache since the cache last noticed a change of the weights."""
        return self._entries.in_use

    def get_or_compute(
        self, model: Model[list[Doc], list[Floats3d]], docs: Sequence[Doc], *, keep: bool
    ) -> list[Floats3d]:
        """Return the layers of Docs from the cache, and compute layers that are not cached. The caller must
        not change the arrays, because the next epoch uses the same arrays.

        Args:
            model: a `BiLM_v1` model.
            keep: store all computed layers, and remove older layers from memory if space is needed. If `keep`
                is false, remove no layers from memory, and store the layers of a Doc only if `mark_training`
                has marked the Doc or if this is the second call with the Doc.

        Raises:
            OSError: the folder cannot be written.
            ValueError: the option `get_spans` returns wrong spans (see `spans_of`).
        """
        if not self.megabytes and self.folder is None:
            return model.predict(list(docs))
        entries, keys = self._entries_of(model), keys_of(docs, model.attrs["options"].get_spans)
        entries.in_use = entries.in_use or keep
        layers: list[Any] = [entries.find(key, model.ops, evict=keep) for key in keys]
        missing = [row for row, array in enumerate(layers) if array is None]
        computed = model.predict([docs[row] for row in missing])
        # False if another thread has changed the weights meanwhile.
        unchanged = entries.version == shim_of(model).version
        for row, array in zip(missing, computed, strict=True):
            layers[row] = array
            if unchanged and (keep or keys[row] in entries.asked):
                entries.store(keys[row], array, evict=keep)
                if entries.files is not None:
                    entries.files.write(keys[row], model.ops.to_numpy(array))
            elif entries.in_use:
                entries.remember(keys[row : row + 1])
        return layers

    def mark_training(self, model: Model[list[Doc], list[Floats3d]], docs: Sequence[Doc]) -> None:
        """Mark Docs as training data. When `get_or_compute` next computes the layers of these Docs, it also
        stores the layers."""
        if self.megabytes or self.folder is not None:
            entries = self._entries_of(model)
            entries.remember(keys_of(docs, model.attrs["options"].get_spans))
            entries.in_use = True

    def _entries_of(self, model: Model) -> _Entries:
        """Return the cached layers from the current weights. If the weights have changed since the last call,
        replace `self._entries` by empty `_Entries`."""
        shim = shim_of(model)
        with self._lock:
            # Read inside the lock: a thread that has read an old version must not replace the entries of a newer one.
            if self._entries.version != (version := shim.version):
                files = None
                # The weights of a trained biLM change at each step, so its files would never be read again.
                if self.folder is not None and shim.trainable is None:
                    kind = f"{model.attrs['options'].dtype}-{shim.checksum()}"
                    files = LayerFiles(self.folder, kind)
                self._entries = _Entries(version, files, self.megabytes * 1e6)
            return self._entries

    def __reduce__(self) -> tuple[Any, ...]:
        return LayerCache, (self.megabytes, self.folder)


class _Entries:
    """The cached layers of Docs that have been computed with the same weights.

    After a change of the weights, the cache creates new `_Entries`. A thread that still computes with the old
    weights can only write to the old `_Entries`.

    Args:
        version: identifier of the weights (see `BiLMShim.version`).
        files: files in which layers are also stored; None: no files.
        capacity: size limit of the layers in memory, in bytes.
    """

    def __init__(self, version: str, files: LayerFiles | None, capacity: float) -> None:
        self.version = version
        self.files = files
        self.asked: set[bytes] = set()
        """The keys of Docs that have been predicted once or marked as training data. The next time that the
        layers of such a Doc are computed, the cache stores them."""
        self.in_use = False
        self._capacity = capacity
        self._layers: OrderedDict[bytes, Floats3d] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def remember(self, keys: Sequence[bytes]) -> None:
        """Add the keys of Docs to `asked`, unless `asked` already contains `MOST_KEYS` keys."""
        if len(self.asked) < MOST_KEYS:
            self.asked.update(keys)

    def find(self, key: bytes, ops: Ops, *, evict: bool) -> Floats3d | None:
        """Return the layers of a Doc from memory or from a file; None if there are no layers. Layers from a
        file are also stored in memory, with this value of `evict` (see `store`)."""
        with self._lock:
            if (layers := self._layers.get(key)) is not None:
                self._layers.move_to_end(key)
                return layers
        array: Any = None if self.files is None else self.files.read(key)
        if array is None:
            return None
        layers = ops.asarray3f(array, dtype=array.dtype)
        self.store(key, layers, evict=evict)
        return layers

    def store(self, key: bytes, layers: Floats3d, *, evict: bool) -> None:
        """Store the layers of a Doc in memory. If there is too little space: with `evict`, remove the least
        recently used layers; without `evict`, do not store the new layers."""
        size = _ENTRY_BYTES + layers.nbytes
        with self._lock:
            space = self._capacity if evict else self._capacity - self._bytes
            if size > space or key in self._layers:
                return
            self._layers[key] = layers
            self._bytes += size
            while self._bytes > self._capacity:
                self._bytes -= _ENTRY_BYTES + self._layers.popitem(last=False)[1].nbytes


class LayerFiles:
    """Files with the layers of one biLM: a `.npy` file for each Doc, with a hash of the content at the end.

    The files are in a subfolder. The name of the subfolder contains `kind` and the version of this package,
    so layers from other weights or from another version of the package are never read. Several processes can
    use the folder, because each file is written atomically.

    Args:
        folder: the folder that contains a subfolder for each biLM. The folder is created when the first file
            is written.
        kind: text that identifies the weights of the biLM and the data type of its layers.
    """

    def __init__(self, folder: str, kind: str) -> None:
        self._folder = Path(folder) / f"{__version__}-{kind}"

    def read(self, key: bytes) -> np.ndarray | None:
        """Return the layers of the Doc with this key; None if there is no file, or if the file is damaged."""
        try:
            data = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        array, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        if Digest(array).digest() != digest:
            return None
        return np.load(BytesIO(array))

    def write(self, key: bytes, array: np.ndarray) -> None:
        """Write the layers of the Doc with this key to a file.

        Raises:
            OSError: the disk is full or not writable.
        """
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = BytesIO()
        np.save(content, array)
        data = content.getvalue()
        # Not durable, because flushing many small files is slow. If a crash leaves a file incomplete, its digest is
        # wrong.
        atomic_write(path, data + Digest(data).digest(), durable=False)

    def _path(self, key: bytes) -> Path:
        return self._folder / f"{key.hex()}.npy"


def keys_of(docs: Sequence[Doc], get_spans: SpanGetter | None) -> list[bytes]:
    """Return the key of each Doc: a hash of 16 bytes over the words and spans of the Doc. These and the
    weights determine the layers.

    Raises:
        ValueError: `get_spans` returns wrong spans (see `spans_of`).
    """
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

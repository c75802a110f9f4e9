"""A folder of layers, which the cache stores beyond its memory and beyond the run."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np

from ...about import __version__
from ...digest import Digest
from ...files import atomic_write

_DIGEST_BYTES = Digest().digest_size


class LayerFiles:
    """The layers of one biLM: a `.npy` file for each Doc, with a digest after the array.

    They have a folder of their own, named by the version of this package and by their kind, so that no layers are read
    that would be computed differently now. Several processes may use it: a file appears whole or not at all.

    Args:
        folder: contains such a folder for each biLM. It is created when a file is written.
        kind: number type and weights of the layers; part of a file name.
    """

    def __init__(self, folder: str, kind: str) -> None:
        self._folder = Path(folder) / f"{__version__}-{kind}"

    def read(self, key: bytes) -> np.ndarray | None:
        """Return the array of a key; None: there is none, or its file is damaged."""
        try:
            data = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        array, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        if Digest(array).digest() != digest:
            return None
        return np.load(BytesIO(array))

    def write(self, key: bytes, array: np.ndarray) -> None:
        """Write the array of a key.

        Raises:
            OSError: the disk is full, or not writable.
        """
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = BytesIO()
        np.save(content, array)
        data = content.getvalue()
        # Not durable, because flushing each small file is slow, and the digest detects what a crash leaves incomplete.
        atomic_write(path, data + Digest(data).digest(), durable=False)

    def _path(self, key: bytes) -> Path:
        return self._folder / f"{key.hex()}.npy"

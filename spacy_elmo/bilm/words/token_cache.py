"""A cache of word vectors, so that frequent words are not encoded in every batch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from .token_encoder import TokenEncoder

# 32,768 types cover 97 % of English words in running text; with vectors of width 128 a full cache takes 21 MB.
_CAPACITY = 1 << 15


class TokenCache(nn.Module):
    """A token encoder with a cache of word vectors, for prediction on the CPU. If the parameters of the
    encoder change, create a new cache.

    The cache has no lock, because a forked process could inherit a lock that is never released. Threads can
    still share the cache, because each vector is stored before its key is added, and is never changed. A full
    cache is replaced by an empty one.

    Args:
        encoder: the token encoder for words that are not in the cache.
        capacity: largest number of words in the cache.
    """

    def __init__(self, encoder: TokenEncoder, capacity: int = _CAPACITY) -> None:
        super().__init__()
        self.encoder = encoder
        self.boundaries = encoder.boundaries
        self._capacity = capacity
        self._store: _Store | None = None

    def ids(self, words: Sequence[str]) -> Tensor:
        """Return the token ids of each word; see `TokenEncoder.ids`."""
        return self.encoder.ids(words)

    def clear(self) -> None:
        """Remove all words from the cache."""
        self._store = None

    @torch.no_grad()
    def forward(self, ids: Tensor) -> Tensor:
        """Return word vectors, (words, projection), for the result of the method `ids`. The vectors come from
        the cache or from the encoder."""
        if not len(ids):
            return self.encoder(ids)
        keys, store = _keys(ids), self._store
        if store is None:
            vectors = self.encoder(ids)
            store = self._store = _Store(self._capacity, vectors)
            store.add(keys, vectors)
            return vectors
        rows = store.find(keys)
        vectors = store.vectors.index_select(0, torch.from_numpy(rows.clip(0)))
        if len(missing := np.flatnonzero(rows < 0)):
            indices = torch.from_numpy(missing)
            encoded = vectors[indices] = self.encoder(ids[indices])
            if len(store) + len(missing) > self._capacity:
                store = self._store = _Store(self._capacity, vectors)
                store.add(keys, vectors)
            else:
                store.add([keys[index] for index in missing.tolist()], encoded)
        return vectors


class _Store:
    """A matrix of word vectors, with a dict from the key of each word to a row. Vectors are never changed or
    removed.

    Args:
        capacity: number of rows of the matrix.
        like: tensor with the same number of columns and the same data type.
    """

    def __init__(self, capacity: int, like: Tensor) -> None:
        self.vectors = like.new_empty((capacity, like.shape[1]))
        self._rows: dict[bytes, int] = {}
        self._free = iter(range(capacity))
        self._filled = 0

    def __len__(self) -> int:
        """Return the number of rows that contain a word vector. Two threads may have added the same word."""
        return self._filled

    def find(self, keys: Sequence[bytes]) -> np.ndarray:
        """Return the row of each key, (keys,). The row of an unknown key is -1."""
        row_of = self._rows.get
        return np.fromiter((row_of(key, -1) for key in keys), dtype=np.int64, count=len(keys))

    def add(self, keys: Sequence[bytes], vectors: Tensor) -> None:
        """Add the vectors of new keys until the matrix is full. `vectors` has one row for each key."""
        new = {key: index for index, key in enumerate(keys) if key not in self._rows}
        rows = list(itertools.islice(self._free, len(new)))
        self._filled += len(rows)
        self.vectors[rows] = vectors[list(new.values())[: len(rows)]]
        self._rows.update(zip(new, rows, strict=False))


def _keys(ids: Tensor) -> list[bytes]:
    """Return the key of each word in the cache: the bytes of its token ids."""
    raw = np.ascontiguousarray(ids.numpy()).reshape(len(ids), -1)
    return raw.view(f"V{raw.dtype.itemsize * raw.shape[1]}").ravel().tolist()

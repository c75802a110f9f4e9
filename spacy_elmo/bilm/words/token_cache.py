"""Vectors of the words read lately, so that frequent ones are not encoded again and again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from .token_encoder import TokenEncoder

# Of 32,768 types are 97 of 100 English words; at a width of 128 a full table takes 21 MB.
_CAPACITY = 1 << 15


class TokenCache(nn.Module):
    """A token encoder that remembers. On the CPU, for prediction alone; it is thrown away when parameters change.

    A word is known by its ids, so nothing is kept of strings and vocabularies. Threads share the table without a lock,
    which a forked process could find closed: a row is written before it can be found, and never again; when the table
    is full, the half read last moves to a new one.

    Args:
        encoder: does the work.
        capacity: words kept.
    """

    def __init__(self, encoder: TokenEncoder, capacity: int = _CAPACITY) -> None:
        super().__init__()
        self.encoder = encoder
        self.boundaries = encoder.boundaries
        self._capacity = capacity
        self._calls = itertools.count(1)
        self._store: _Store | None = None

    @property
    def alphabet(self) -> str:
        """As of the encoder."""
        return self.encoder.alphabet

    def set_names(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """As of the encoder."""
        self.encoder.set_names(vocabulary, alphabet)

    def ids(self, words: Sequence[str]) -> Tensor:
        """As of the encoder."""
        return self.encoder.ids(words)

    def forget(self) -> None:
        """Begin anew."""
        self._store = None

    @torch.no_grad()
    def forward(self, ids: Tensor) -> Tensor:
        """(K, ...) integers -> (K, projection), as of the encoder."""
        if not len(ids):
            return self.encoder(ids)
        keys, call = _keys(ids), next(self._calls)
        store = self._store
        if store is None:
            vectors = self.encoder(ids)
            store = self._store = _Store(self._capacity, vectors)
            store.keep(keys, vectors, call)
            return vectors
        rows = store.rows_of(keys)
        store.used[rows[rows >= 0]] = call
        vectors = store.vectors.index_select(0, torch.from_numpy(rows.clip(0)))
        if len(fresh := np.flatnonzero(rows < 0)):
            where = torch.from_numpy(fresh)
            encoded = self.encoder(ids[where])
            vectors[where] = encoded
            # Rows, not words: threads may have added one twice.
            if len(store) + len(fresh) > self._capacity:
                store = self._store = store.recent(self._capacity // 2)
            store.keep([keys[row] for row in fresh.tolist()], encoded, call)
        return vectors


class _Store:
    """Vectors by key; rows are only ever added.

    Args:
        capacity: rows.
        like: vectors of that width and type.
    """

    def __init__(self, capacity: int, like: Tensor) -> None:
        self.vectors = like.new_empty((capacity, like.shape[1]))
        self.used = np.zeros(capacity, dtype=np.int64)
        """The call in which each row was read last."""
        self._rows: dict[bytes, int] = {}
        self._free = iter(range(capacity))
        self._taken = 0

    def __len__(self) -> int:
        """Rows that are taken."""
        return self._taken

    def rows_of(self, keys: Sequence[bytes]) -> np.ndarray:
        """(K,) integers, -1 for those that are not there."""
        find = self._rows.get
        return np.fromiter((find(key, -1) for key in keys), dtype=np.int64, count=len(keys))

    def keep(self, keys: Sequence[bytes], vectors: Tensor, call: int) -> None:
        """Add rows, as many as there is room for; words that are read alike share one."""
        places = {key: place for place, key in enumerate(keys) if key not in self._rows}
        rows = list(itertools.islice(self._free, len(places)))
        self._taken += len(rows)
        self.vectors[rows] = vectors[list(places.values())[: len(rows)]]
        self.used[rows] = call
        self._rows.update(zip(places, rows, strict=False))

    def recent(self, count: int) -> _Store:
        """A new one with the rows read last."""
        keys, rows = zip(*list(self._rows.items()), strict=True)
        chosen = np.argsort(-self.used[list(rows)], kind="stable")[:count].tolist()
        other = _Store(len(self.vectors), self.vectors)
        kept = [rows[place] for place in chosen]
        other.keep([keys[place] for place in chosen], self.vectors[kept], 0)
        other.used[: len(kept)] = self.used[kept]
        return other


def _keys(ids: Tensor) -> list[bytes]:
    """The ids of each word as one string of bytes."""
    raw = np.ascontiguousarray(ids.numpy()).reshape(len(ids), -1)
    return raw.view(f"V{raw.dtype.itemsize * raw.shape[1]}").ravel().tolist()

"""Nearest vectors by usearch, for millions of them: a few may be missed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from usearch.index import Index, MetricKind, ScalarKind


class HnswNeighbours:
    """Vectors of length 1 in a graph of near ones (HNSW), of which a query visits a small part.

    Not faiss, whose OpenMP crashes beside torch's on macOS; usearch has threads of its own.

    Args:
        width: of the vectors.
    """

    def __init__(self, width: int) -> None:
        self._index = Index(ndim=width, metric=MetricKind.IP, dtype=ScalarKind.F32)

    def __len__(self) -> int:
        return len(self._index)

    def add(self, vectors: np.ndarray) -> None:
        """Take in (n, width) vectors, which get the next n numbers."""
        start = len(self)
        self._index.add(np.arange(start, start + len(vectors)), vectors)

    def search(self, vector: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers and the cosines of about the k vectors that are nearest to a (width,) one of length 1."""
        found = self._index.search(vector, k)
        return found.keys.astype(np.int64), 1 - found.distances

    def to_disk(self, path: Path) -> None:
        """Write a file of usearch's."""
        self._index.save(path)

    @classmethod
    def from_disk(cls, path: Path) -> HnswNeighbours:
        """Read what `to_disk` wrote.

        Raises:
            OSError: it cannot be read.
            ValueError: it holds no such vectors.
        """
        if not path.is_file():
            raise FileNotFoundError(f"No file {path}")
        try:
            index = Index.restore(path)
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{path}: no vectors of usearch, or damaged ({error})") from error
        assert index is not None  # as it is for a missing file
        found = cls(index.ndim)
        found._index = index
        return found

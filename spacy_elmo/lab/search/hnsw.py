"""Approximate nearest-neighbor search with the library usearch, for millions of vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from usearch.index import Index, MetricKind, ScalarKind


class HnswNeighbors:
    """Approximate nearest-neighbor search in vectors of norm 1, by a graph that links near vectors (HNSW).

    A query visits a small part of the graph. The library usearch builds the graph, with its own threads. The
    library faiss is not used, because on macOS, a process crashes if it loads the OpenMP libraries of both
    faiss and torch.

    Args:
        width: number of dimensions of the vectors.
    """

    def __init__(self, width: int) -> None:
        self._index = Index(ndim=width, metric=MetricKind.IP, dtype=ScalarKind.F32)

    @property
    def width(self) -> int:
        """Number of dimensions of the vectors."""
        return self._index.ndim

    def __len__(self) -> int:
        return len(self._index)

    def add(self, vectors: np.ndarray) -> None:
        """Add n vectors of norm 1, (n, width) float32. The new vectors get the next n free indices."""
        start = len(self)
        self._index.add(np.arange(start, start + len(vectors)), vectors)

    def search(self, vector: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the k stored vectors that are nearest to a query vector of norm 1, (width,), by approximate
        search.

        Returns:
            The indices and the cosines of the vectors, nearest first. Some near vectors can be missing.
        """
        matches = self._index.search(vector, min(k, len(self)))
        return matches.keys.astype(np.int64), 1 - matches.distances

    def to_disk(self, path: Path) -> None:
        """Write the graph to a file in usearch's format.

        Raises:
            OSError: the file cannot be written.
        """
        try:
            self._index.save(path)
        except RuntimeError as error:
            raise OSError(str(error)) from error

    @classmethod
    def from_disk(cls, path: Path) -> HnswNeighbors:
        """Load a graph from a file that `to_disk` has written.

        Check the digest of the file before you call this method. usearch does not check the offsets in the
        file, so a damaged file can crash the process.

        Raises:
            ValueError: the file has another format, or is damaged.
        """
        try:
            index = Index.restore(path)
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{path} is not a file of usearch, or is damaged ({error})") from error
        assert index is not None  # it is None only if the file is missing
        neighbors = cls(index.ndim)
        neighbors._index = index
        return neighbors

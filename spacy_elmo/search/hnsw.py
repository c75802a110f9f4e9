"""Approximate nearest neighbors by usearch, for millions of vectors: a few may be missed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from usearch.index import Index, MetricKind, ScalarKind


class HnswNeighbors:
    """Vectors of length 1 in a graph of near vectors (HNSW), of which a query visits a small part.

    Not faiss, whose OpenMP crashes beside torch's on macOS; usearch uses its own threads.

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
        """Add (n, width) vectors, which get the next n numbers."""
        start = len(self)
        self._index.add(np.arange(start, start + len(vectors)), vectors)

    def search(self, vector: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers and the cosines of about the k vectors nearest to a (width,) vector of length 1."""
        matches = self._index.search(vector, k)
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

        usearch follows the offsets of the file without checks: a damaged graph may crash the process. So the digest of
        the file must be checked before.

        Raises:
            OSError: it cannot be read.
            ValueError: it is not such a file, or damaged.
        """
        if not path.is_file():
            raise FileNotFoundError(f"No file {path}")
        try:
            index = Index.restore(path)
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"{path} contains no vectors of usearch, or is damaged ({error})"
            ) from error
        assert index is not None  # only for a missing file
        neighbors = cls(index.ndim)
        neighbors._index = index
        return neighbors

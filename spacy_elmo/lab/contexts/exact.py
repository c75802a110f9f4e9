"""Exact nearest-neighbor search: the query is compared with every vector."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...npy_file import read_npy

# Bound of the rounding error of a matrix product of vectors of length 1. Even equal rows can have different errors.
_ROUNDING = 1e-5


class ExactNeighbors:
    """Exact nearest-neighbor search. The vectors have norm 1 and are stored as one matrix.

    Args:
        width: number of dimensions of the vectors.
    """

    def __init__(self, width: int) -> None:
        self._blocks = [np.empty((0, width), dtype=np.float32)]

    @property
    def width(self) -> int:
        """Number of dimensions of the vectors."""
        return self._blocks[0].shape[1]

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def add(self, vectors: np.ndarray) -> None:
        """Add n vectors of norm 1, (n, width) float32. The new vectors get the next n free indices."""
        self._blocks.append(vectors)

    def search(self, vector: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the k stored vectors that are nearest to a query vector of norm 1, (width,).

        Returns:
            The indices and the cosines of the k vectors, nearest first. If there are fewer vectors, all are
            returned. Vectors with equal cosines are in the order of their indices.
        """
        matrix = self._matrix()
        approximate = matrix @ vector
        k = min(k, len(approximate))
        kth_best = np.partition(approximate, len(approximate) - k)[len(approximate) - k] if k else 0
        candidates = np.flatnonzero(approximate >= kth_best - _ROUNDING)
        cosines = (matrix[candidates] * vector).sum(axis=1)
        order = np.argsort(-cosines, kind="stable")[:k]
        return candidates[order], cosines[order]

    def to_disk(self, path: Path) -> None:
        """Write the vectors to a file in NumPy's format `.npy`."""
        with path.open("wb") as file:
            np.save(file, self._matrix())

    @classmethod
    def from_disk(cls, path: Path) -> ExactNeighbors:
        """Load vectors from a file that `to_disk` has written.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file has another format or is damaged.
        """
        matrix = read_npy(path, "float32", axes=2)
        neighbors = cls(matrix.shape[1])
        neighbors.add(matrix)
        return neighbors

    def _matrix(self) -> np.ndarray:
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0]

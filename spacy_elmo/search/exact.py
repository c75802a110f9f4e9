"""Nearest vectors by comparing with all."""

from __future__ import annotations

from pathlib import Path

import numpy as np

# A matrix product rounds its rows in different ways, equal ones too: by less than this where they are of length 1.
_ROUNDING = 1e-5


class ExactNeighbours:
    """Vectors of length 1 in one matrix, each of which is compared with the query.

    Args:
        width: of the vectors.
    """

    def __init__(self, width: int) -> None:
        self._blocks = [np.empty((0, width), dtype=np.float32)]

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def add(self, vectors: np.ndarray) -> None:
        """Take in (n, width) vectors, which get the next n numbers."""
        self._blocks.append(vectors)

    def search(self, vector: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers and the cosines of the k vectors that are nearest to a (width,) one of length 1; of all vectors,
        if there are fewer. Nearest first; of equals, the one that came first.
        """
        matrix = self._matrix()
        rough = matrix @ vector
        k = min(k, len(rough))
        least = np.partition(rough, len(rough) - k)[len(rough) - k] if k else 0
        candidates = np.flatnonzero(rough >= least - _ROUNDING)
        cosines = (matrix[candidates] * vector).sum(axis=1)
        order = np.argsort(-cosines, kind="stable")[:k]
        return candidates[order], cosines[order]

    def to_disk(self, path: Path) -> None:
        """Write a file of numpy's."""
        with path.open("wb") as file:
            np.save(file, self._matrix())

    @classmethod
    def from_disk(cls, path: Path) -> ExactNeighbours:
        """Read what `to_disk` wrote.

        Raises:
            OSError: it cannot be read.
            ValueError: it holds no such vectors.
        """
        try:
            matrix = np.load(path)
        except (EOFError, ValueError) as error:
            raise ValueError(f"{path}: no vectors, or damaged ({error})") from error
        if matrix.ndim != 2 or matrix.dtype != np.float32:
            raise ValueError(
                f"{path}: expected a matrix of float32, found {matrix.dtype} {matrix.shape}"
            )
        found = cls(matrix.shape[1])
        found.add(matrix)
        return found

    def _matrix(self) -> np.ndarray:
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0]

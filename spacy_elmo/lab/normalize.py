"""Normalization of vectors to norm 1, so that the dot product of two vectors is their cosine."""

import numpy as np


def normalize(vectors: np.ndarray) -> np.ndarray:
    """Scale each vector to norm 1. Zero vectors stay zero.

    Args:
        vectors: one vector, (width,), or an array of vectors, (..., width).
    """
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)

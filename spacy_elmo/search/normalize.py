"""Normalization of vectors to length 1. The dot product of two such vectors is their cosine."""

import numpy as np


def normalize(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors (..., width) to length 1. Zero vectors stay zero, and have a cosine of 0 with every vector."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)

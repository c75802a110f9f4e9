"""Vectors of length 1, whose inner product is their cosine."""

import numpy as np


def unit(vectors: np.ndarray) -> np.ndarray:
    """(..., width) scaled to length 1. Zeros stay zeros, and have a cosine of 0 with everything."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)

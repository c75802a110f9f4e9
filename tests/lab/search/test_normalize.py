"""Vectors of length 1."""

import numpy as np

from spacy_elmo.lab.normalize import normalize


def test_lengths():
    vectors = np.array([[[3, 4], [0, -2]], [[0, 0], [1e-15, 0]]], dtype=np.float32)
    actual = normalize(vectors)
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, [[[0.6, 0.8], [0, -1]], [[0, 0], [1, 0]]], rtol=1e-6)
    np.testing.assert_allclose(normalize(np.array([0.0, 5.0])), [0, 1])

"""A pipeline with a tiny biLM, and occurrences of words with vectors that a person can check."""

import numpy as np
import pytest

from spacy_elmo.lab.contexts import Occurrence, Occurrences
from tests import pipelines, tiny


@pytest.fixture(scope="package")
def weights(tmp_path_factory):
    return tiny.save(tmp_path_factory.mktemp("lab") / "w.safetensors", {"language": "en"})


@pytest.fixture(scope="package")
def nlp(weights):
    return pipelines.blank(weights)


def occurrences(found, vectors, center=0.0):
    """Return occurrences with vectors (views, n, width) and one center for all views. Items may be occurrences or
    words."""
    vectors = np.array(vectors, dtype="float32")
    return Occurrences(
        [
            one if isinstance(one, Occurrence) else Occurrence(f"{number} ", one, " .", "text")
            for number, one in enumerate(found)
        ],
        [f"view {view}" for view in range(len(vectors))],
        vectors,
        np.full((len(vectors), 1, vectors.shape[2]), center, dtype="float32"),
    )

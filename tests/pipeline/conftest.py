"""Tiny random weights files, and a pipeline on one of them."""

from pathlib import Path

import pytest
from spacy.language import Language

from spacy_elmo.bilm.weights import Weights
from tests import pipelines, tiny


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An English character biLM with 3 layers of width 10."""
    return _write(tmp_path_factory, tiny.config())


@pytest.fixture(scope="session")
def other_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another one with 4 layers of width 8."""
    return _write(tmp_path_factory, tiny.config(projection=4, layers=3), seed=1)


def _write(tmp_path_factory: pytest.TempPathFactory, config, seed: int = 0) -> Path:
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    Weights.from_bilm(tiny.bilm(config, seed), card={"language": "en"}).save(path)
    return path


@pytest.fixture
def nlp(weights: Path) -> Language:
    return pipelines.blank(weights)

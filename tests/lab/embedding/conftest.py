"""A tiny pipeline, and a corpus of many small shards."""

import pytest

from spacy_elmo.lab.corpora import items as corpus
from tests import pipelines, tiny


@pytest.fixture
def weights(tmp_path):
    return tiny.save(tmp_path / "w.safetensors", {"language": "en"})


@pytest.fixture
def nlp(weights):
    return pipelines.blank(weights)


@pytest.fixture
def text(tmp_path, monkeypatch):
    """Return a text of seven lines in three shards. The fourth line is blank."""
    monkeypatch.setattr(corpus, "CHARACTERS_PER_SHARD", 50)
    path = tmp_path / "text.txt"
    path.write_text(
        "Anna met Bob in Paris. It rained!\nThe bank in Rome is old.\nNo, she sat on it by the river.\n\n"
        "  Two cats sat there.  \nNo\nEve says: it never rains in the city of Rome, but it did.\n",
        encoding="utf8",
    )
    return path

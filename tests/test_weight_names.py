"""The `weights` option leads to a file."""

import re

import numpy as np
import pytest

from spacy_elmo import weight_names
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.weight_names import DEFAULT_WEIGHTS, bundled_names, find_weights
from tests import pipelines


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(weight_names, "FOLDER", tmp_path)
    for name in ("en_one_v1", "de_two_v1"):
        (tmp_path / f"{name}.safetensors").touch()
    return tmp_path


def test_name_and_path(folder):
    assert bundled_names() == ["de_two_v1", "en_one_v1"]
    path = folder / "en_one_v1.safetensors"
    assert find_weights("en_one_v1") == path
    assert find_weights(str(path)) == path


def test_name_wins_over_a_path(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en_one_v1").touch()
    assert find_weights("en_one_v1") == folder / "en_one_v1.safetensors"


@pytest.mark.parametrize("weights", ["en_tow_v1", "no/such.safetensors"])
def test_what_is_not_there(folder, weights):
    with pytest.raises(FileNotFoundError) as error:
        find_weights(weights)
    for word in (repr(weights), str(weight_names.Path(weights).absolute()), "de_two_v1, en_one_v1"):
        assert word in str(error.value)


@pytest.mark.parametrize("name", ["elmo.hdf5", "theirs.zip", "encoder.pkl", "weights.th", "folder"])
def test_files_of_other_programs_are_to_be_converted(tmp_path, name):
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"theirs")
    nlp = pipelines.blank(path)
    with pytest.raises(ValueError, match=re.escape(f"convert auto {path} ours.safetensors")):
        nlp("a")


def test_bundled_weights():
    """The vectors distinguish the senses of a word by a wide margin."""
    weights = Weights.load(find_weights(DEFAULT_WEIGHTS))
    assert weights.card["language"] == "en"
    assert weights.build_head() is not None
    nlp = pipelines.spacy.blank("en")
    elmo = nlp.add_pipe("elmo")
    # A pipeline does not carry the head.
    assert len(elmo.to_bytes()) < find_weights(DEFAULT_WEIGHTS).stat().st_size / 2
    for word, texts in {
        "bank": ("She sat on the bank of the river.", "He walked along the bank of the river.",
                 "The bank lent her money."),
        "left": ("He left the house.", "She left the city early.", "Turn to the left side."),
    }.items():  # fmt: skip
        one, same, other = (vector(nlp(text), word) for text in texts)
        assert one.shape == (weights.config.width,)
        assert cosine(one, same) > cosine(one, other) + 0.1


def vector(doc, word):
    (token,) = [token for token in doc if token.text == word]
    return token._.elmo


def cosine(one, other):
    return one @ other / np.sqrt((one @ one) * (other @ other))

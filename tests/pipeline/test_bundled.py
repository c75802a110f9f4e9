"""From the `weights` option to a file."""

import pytest

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pipeline import bundled
from spacy_elmo.pipeline.bundled import DEFAULT_WEIGHTS, FOLDER, bundled_names, find_weights
from tests import pipelines


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "FOLDER", tmp_path)
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
    for word in (repr(weights), str(bundled.Path(weights).absolute()), "de_two_v1, en_one_v1"):
        assert word in str(error.value)


def test_nothing_bundled(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "FOLDER", tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="bundled: none"):
        find_weights("x")


@pytest.mark.skipif(
    not (FOLDER / f"{DEFAULT_WEIGHTS}.safetensors").exists(), reason="the bundled file is not there"
)
def test_bundled_weights():
    weights = Weights.read(find_weights(DEFAULT_WEIGHTS))
    assert weights.card["language"] == "en"
    assert weights.head() is None
    nlp = pipelines.spacy.blank("en")
    nlp.add_pipe("elmo")
    doc = nlp("She sat on the bank of the river. The bank lent her money.")
    assert doc._.elmo.shape == (len(doc), weights.config.width)
    assert doc[4]._.elmo @ doc[10]._.elmo != doc[4]._.elmo @ doc[4]._.elmo

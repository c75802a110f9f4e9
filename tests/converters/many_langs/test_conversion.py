"""Numbers of ELMoForManyLangs in our network are compared with an oracle; wrong tensors are rejected."""

import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.many_langs.conversion import convert
from tests import tiny
from tests.converters import foreign_many_langs as foreign
from tests.converters.many_langs_oracle import Oracle


def assert_equals_oracle(weights, options, states, sentences, lexicons=None):
    oracle = Oracle(options, *states, *(lexicons or foreign.lexicons(options)))
    layers = tiny.read(weights.build_bilm(), sentences).layers
    got = layers.split([len(sentence) for sentence in sentences], 1)
    for sentence, ours in zip(sentences, got, strict=True):
        np.testing.assert_allclose(ours, oracle.layers(sentence), rtol=0, atol=1e-5)


ARCHITECTURES = {
    "as published": {},
    "tanh": {"activation": "tanh", "n_highway": 2},
    "no highway": {"n_highway": 0},
    "no clips": {"cell_clip": None, "proj_clip": 0},
    "one layer": {"n_layers": 1},
    "three layers": {"n_layers": 3},
    "square projections": {"dim": 5, "filters": [[3, 5]]},
    "square lstm": {"dim": 5},
    "as wide as the row": {"filters": [[10, 2], [1, 1], [10, 1]]},
    "words alone": {"char_dim": 0},
    "characters alone": {"word_dim": 0},
    "characters as wide as the projection": {"word_dim": 0, "filters": [[3, 5]]},
    "fifty positions": {"max_characters_per_token": 50},
    "seven positions": {"max_characters_per_token": 7},
    "capital letters": {"name": "CNN"},
}


@pytest.mark.parametrize("fields", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_layers_of_every_architecture(tmp_path, fields):
    options = foreign.options()
    options["token_embedder"]["name"] = fields.get("name", "cnn")
    for name, value in fields.items():
        if name != "name":
            section = next(s for s in ("encoder", "token_embedder") if name in options[s])
            options[section][name] = value
    states = foreign.state_dicts(options)
    weights = convert(foreign.write(tmp_path, options, *states)).weights
    assert_equals_oracle(weights, options, states, foreign.SENTENCES)
    again = Weights.from_bytes(weights.to_bytes())
    assert (again.config, again.vocabulary, again.alphabet, again.card) == (
        weights.config, weights.vocabulary, weights.alphabet, weights.card
    )  # fmt: skip
    assert_equals_oracle(again, options, states, foreign.SENTENCES)


OPTIONS = foreign.options()
STATES = foreign.state_dicts(OPTIONS)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.lists(st.text("catsCxïΩ鳥🙂<>\u3000\ud800\x85 ", max_size=12), max_size=4), max_size=3
    )
)
def test_any_words(tmp_path_factory, sentences):
    folder = tmp_path_factory.getbasetemp() / "any-words"
    if not folder.exists():
        folder.mkdir()
        foreign.write(folder, OPTIONS, *STATES)
    assert_equals_oracle(convert(folder).weights, OPTIONS, STATES, sentences)


def test_files_of_old_pytorch(tmp_path):
    """Every published model has the format of PyTorch before 1.6, which is no zip file."""
    foreign.write(tmp_path, OPTIONS, *STATES, old=True)
    assert_equals_oracle(convert(tmp_path).weights, OPTIONS, STATES, foreign.SENTENCES)


def test_float16(tmp_path):
    exact = convert(foreign.write(tmp_path, OPTIONS, *STATES)).weights
    rounded = convert(tmp_path, dtype=torch.float16).weights
    for name, tensor in rounded.tensors.items():
        assert torch.equal(tensor, exact.tensors[name].half()), name


def test_what_is_reported(tmp_path):
    foreign.write(tmp_path, OPTIONS, *STATES)
    torch.save({"column_emb.weight": torch.zeros(3)}, tmp_path / "classifier.pkl")
    conversion = convert(tmp_path)
    names = [
        "config.json",
        "network.json",
        "word.dic",
        "char.dic",
        "encoder.pkl",
        "token_embedder.pkl",
    ]
    assert conversion.files == [tmp_path / name for name in names]
    assert conversion.notes == [
        "network: network.json",
        "left out classifier.pkl, the softmax of the training",
    ]
    assert conversion.weights.card == {
        "converted_from": "encoder.pkl and token_embedder.pkl (ELMoForManyLangs)"
    }


def test_every_mismatch_is_named(tmp_path):
    tokens, lstm = foreign.state_dicts(OPTIONS)
    del tokens["projection.bias"]
    tokens["word_emb_layer.embedding.weight"] = torch.zeros(10, 3)
    lstm["forward_layer_2.state_linearity.bias"] = torch.zeros(28)
    lstm["forward_layer_0.state_linearity.bias"] = torch.zeros(27)
    with pytest.raises(ValueError) as error:
        convert(foreign.write(tmp_path, OPTIONS, tokens, lstm))
    first, *problems = str(error.value).splitlines()
    assert first == f"{tmp_path}: the tensors do not fit network.json and the dictionaries:"
    assert problems == [
        "  encoder.forward_layer_0.state_linearity.bias: shape [27], expected [28]",
        "  encoder.forward_layer_2.state_linearity.bias: unexpected",
        "  token_embedder.projection.bias: missing",
        "  token_embedder.word_emb_layer.embedding.weight: shape [10, 3], expected [11, 3]",
    ]


def test_too_large_for_float16(tmp_path):
    tokens, lstm = foreign.state_dicts(OPTIONS)
    tokens["projection.bias"][0] = 1e6
    foreign.write(tmp_path, OPTIONS, tokens, lstm)
    convert(tmp_path)
    with pytest.raises(ValueError, match="projection.bias: .* 65504"):
        convert(tmp_path, dtype=torch.float16)


@pytest.mark.parametrize("old", [False, True])
@settings(max_examples=40, deadline=None)
@given(st.floats(0, 1, exclude_max=True))
def test_truncated_anywhere(tmp_path_factory, old, share):
    folder = tmp_path_factory.mktemp("truncated")
    foreign.write(folder, OPTIONS, *STATES, old=old)
    content = (folder / "encoder.pkl").read_bytes()
    (folder / "encoder.pkl").write_bytes(content[: int(share * len(content))])
    before = sorted(folder.iterdir())
    with pytest.raises(ValueError, match="encoder.pkl"):
        convert(folder)
    assert sorted(folder.iterdir()) == before
    shutil.rmtree(folder)

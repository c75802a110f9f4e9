"""Token encoders against the oracle, which convolves over all positions."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm import token_encoder
from spacy_elmo.bilm.char_ids import char_ids
from spacy_elmo.bilm.token_encoder import CharEncoder, Highway
from tests import tiny
from tests.oracle import Oracle

WORDS = ["a", "", "the", "<S>", "</S>", "naïve", "鳥鳥鳥鳥", "x" * 100, "abcdefghij", "abcdefghi"]
FILTERS = [
    ((1, 2), (2, 3), (4, 4)),
    ((3, 5),),  # no projection: as many filters as the projection is wide
    ((12, 3), (1, 1)),  # as wide as the whole row
    ((7, 2), (7, 1), (2, 6)),  # a width twice, falling widths
]


@torch.no_grad()
def encode(model, words):
    return model.encoder(model.token_ids(words)).numpy()


@pytest.mark.parametrize(
    "activation, highways, filters", itertools.product(["relu", "tanh"], range(4), FILTERS)
)
def test_equals_the_oracle(activation, highways, filters):
    config = tiny.config(activation=activation, highways=highways, filters=filters)
    model = tiny.bilm(config)
    oracle = Oracle(config, model.state_dict())
    expected = [oracle.token(word) for word in WORDS]
    np.testing.assert_allclose(encode(model, WORDS), expected, atol=1e-5)


def test_fifty_positions():
    config = tiny.config(max_characters=50, filters=((1, 3), (7, 4)))
    model = tiny.bilm(config)
    oracle = Oracle(config, model.state_dict())
    words = ["x" * length for length in (0, 1, 40, 41, 42, 43, 47, 48, 49, 60)]
    np.testing.assert_allclose(encode(model, words), [oracle.token(w) for w in words], atol=1e-5)


def test_projection_is_absent_where_the_sizes_agree():
    assert tiny.bilm(tiny.config(filters=((3, 5),))).encoder.projection is None


@settings(max_examples=30)
@given(st.lists(st.text(max_size=15), min_size=1, max_size=9), st.randoms())
def test_a_word_alone_is_the_word_in_a_batch(words, random):
    model = tiny.bilm(tiny.config())
    shuffled = random.sample(words, len(words))
    alone = {word: encode(model, [word])[0] for word in words}
    np.testing.assert_allclose(encode(model, shuffled), [alone[w] for w in shuffled], atol=1e-6)


def test_more_words_than_a_block(monkeypatch):
    model = tiny.bilm(tiny.config())
    words = [chr(97 + i % 26) * (i % 13) for i in range(20)]
    whole = encode(model, words)
    monkeypatch.setattr(token_encoder, "_TYPES_PER_BLOCK", 3)
    np.testing.assert_allclose(encode(model, words), whole, atol=1e-6)


@pytest.mark.parametrize("words", [0, 8])
def test_no_words(words):
    assert encode(tiny.bilm(tiny.config(words=words)), []).shape == (0, 5)


def test_gradients_reach_every_parameter_across_blocks(monkeypatch):
    monkeypatch.setattr(token_encoder, "_TYPES_PER_BLOCK", 2)
    config = tiny.config(activation="tanh")
    encoder = tiny.bilm(config).encoder.double()
    ids = torch.from_numpy(char_ids(["a", "bird", "naïve", "x" * 30], config.max_characters))

    def loss(*parameters):
        named = dict(zip(dict(encoder.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(encoder, named, ids)

    parameters = tuple(p.detach().requires_grad_() for p in encoder.parameters())
    assert torch.autograd.gradcheck(loss, parameters)


def test_highway_by_hand():
    highway = Highway(2)
    with torch.no_grad():
        for parameter in highway.parameters():
            parameter.zero_()
        highway.transform.bias.copy_(torch.tensor([4.0, -4.0]))
    # The gate is half open everywhere: half of relu(bias), half of the input.
    assert highway(torch.tensor([[1.0, 1.0]])).tolist() == [[2.5, 0.5]]


def test_word_table():
    config = tiny.config(words=8)
    model = tiny.bilm(config)
    oracle = Oracle(config, model.state_dict(), tiny.VOCABULARY)
    words = ["cat", "unheard", "<S>", "cat"]
    vectors = encode(model, words)
    np.testing.assert_allclose(vectors, [oracle.token(word) for word in words], atol=1e-6)
    np.testing.assert_array_equal(vectors[1], model.encoder.words[2].detach().numpy())


@torch.no_grad()
def test_start_values():
    """bilm-tf's distributions, by their moments."""
    torch.manual_seed(0)
    encoder = CharEncoder(tiny.config(char_dim=16, filters=((1, 600),), projection=64))
    assert encoder.characters.abs().max() <= 1
    assert float(encoder.characters.std()) == pytest.approx(3**-0.5, rel=0.05)
    assert float(encoder.filters[0].abs().max()) == pytest.approx(0.05, rel=0.01)
    assert float(encoder.projection.weight.std()) == pytest.approx(600**-0.5, rel=0.05)
    assert float(encoder.highways[0].carry.weight.std()) == pytest.approx(600**-0.5, rel=0.05)
    assert (encoder.highways[0].carry.bias == -2).all()
    assert (encoder.highways[0].transform.bias == 0).all()

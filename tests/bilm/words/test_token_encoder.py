"""Token encoders are compared with the oracle, which convolves over all positions."""

import numpy as np
import pytest
import torch

from spacy_elmo.bilm import character_cnn
from spacy_elmo.bilm.character_cnn import Highway
from spacy_elmo.bilm.spelling import Alphabet, char_ids
from spacy_elmo.bilm.token_encoder import CharEncoder
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


def test_fifty_positions():
    config = tiny.config(max_characters=50, filters=((1, 3), (7, 4)))
    model = tiny.bilm(config)
    oracle = Oracle(config, model.state_dict())
    words = ["x" * length for length in (0, 1, 40, 41, 42, 43, 47, 48, 49, 60)]
    np.testing.assert_allclose(encode(model, words), [oracle.token(w) for w in words], atol=1e-5)


def test_more_words_than_a_block(monkeypatch):
    model = tiny.bilm(tiny.config())
    words = [chr(97 + i % 26) * (i % 13) for i in range(20)]
    whole = encode(model, words)
    monkeypatch.setattr(character_cnn, "WORDS_PER_BLOCK", 3)
    np.testing.assert_allclose(encode(model, words), whole, atol=1e-6)


@pytest.mark.parametrize("words", [0, 8])
def test_no_words(words):
    assert encode(tiny.bilm(tiny.config(n_words=words)), []).shape == (0, 5)


def test_gradients_reach_every_parameter_across_blocks(monkeypatch):
    monkeypatch.setattr(character_cnn, "WORDS_PER_BLOCK", 2)
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


@pytest.mark.parametrize("filters", FILTERS)
def test_a_square_projection(filters):
    config = tiny.config(square_projections=True, filters=filters)
    model = tiny.bilm(config)
    oracle = Oracle(config, model.state_dict())
    expected = [oracle.token(word) for word in WORDS]
    np.testing.assert_allclose(encode(model, WORDS), expected, atol=1e-5)


LEXICA = [{}, {"n_symbols": 0}, {"n_words": 0, "word_dim": 0}]


@pytest.mark.parametrize("fields", LEXICA)
def test_lexicon_by_parts(fields):
    """The result is a matrix times [word vector ; character features]. Either part may be absent."""
    model = tiny.bilm(tiny.lexicon_config(highways=0, **fields))
    encoder, words = model.encoder, ["Cat", "cat", "unheard"]
    rows = [tiny.LEXICON.index(word) for word in ("Cat", "cat", "<oov>")]
    parts = [encoder.words[rows]] if encoder.words is not None else []
    if encoder.cnn is not None:
        alphabet = Alphabet(tiny.ALPHABET)
        parts.append(encoder.cnn(torch.from_numpy(alphabet.ids(words, 12))))
    expected = torch.cat(parts, 1) @ encoder.projection.weight + encoder.projection.bias
    np.testing.assert_allclose(encode(model, words), expected.detach(), atol=1e-6)
    assert encode(model, []).shape == (0, 5)


def test_a_word_is_cut_before_it_is_looked_up():
    model = tiny.bilm(tiny.lexicon_config(n_symbols=0, max_characters=7))
    model.set_vocabulary(["<oov>", "<bos>", "<eos>", "aaaaa", "aaaaaa", "b", "c", "d"])
    assert model.token_ids(["aaaaa", "aaaaaa", "a" * 100, "aaaa"]).tolist() == [[3], [3], [3], [0]]


def test_boundaries_have_names_of_their_own():
    model = tiny.bilm(tiny.lexicon_config())
    assert model.encoder.boundaries == ("<bos>", "<eos>")
    ids = model.token_ids(["<bos>", "<eos>", "<S>"])
    assert ids[:, 0].tolist() == [1, 2, 0]
    # The start of a word, the boundary, the end of a word; <S> is three characters, all of them unknown.
    assert ids[:, 1:5].tolist() == [[4, 0, 5, 3], [4, 1, 5, 3], [4, 2, 2, 2]]


@pytest.mark.parametrize("fields", LEXICA)
def test_names_that_do_not_fit_the_tables(fields):
    model = tiny.bilm(tiny.lexicon_config(**fields))
    if model.encoder.cnn is not None:
        with pytest.raises(
            ValueError,
            match=r"7 together, .* 18 rows",
        ):
            model.set_vocabulary(tiny.LEXICON, "a")
        if model.encoder.words is None:
            return
    alphabet = model.encoder.alphabet
    with pytest.raises(ValueError, match="no <eos>$"):
        model.set_vocabulary(["<oov>", "<bos>", *"abcdef"], alphabet)
    with pytest.raises(ValueError, match="3 words, .* 8 rows"):
        model.set_vocabulary(["<oov>", "<bos>", "<eos>"], alphabet)


@torch.no_grad()
def test_initial_values():
    """The moments of the initial values are those of bilm-tf's distributions."""
    torch.manual_seed(0)
    encoder = CharEncoder(tiny.config(char_dim=16, filters=((1, 600),), projection=64))
    assert encoder.characters.abs().max() <= 1
    assert float(encoder.characters.std()) == pytest.approx(3**-0.5, rel=0.05)
    assert float(encoder.filters[0].abs().max()) == pytest.approx(0.05, rel=0.01)
    assert float(encoder.projection.weight.std()) == pytest.approx(600**-0.5, rel=0.05)
    assert float(encoder.highways[0].carry.weight.std()) == pytest.approx(600**-0.5, rel=0.05)
    assert (encoder.highways[0].carry.bias == -2).all()
    assert (encoder.highways[0].transform.bias == 0).all()

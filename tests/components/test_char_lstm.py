"""Embeddings of words from characters. The oracle reads one word at a time."""

import numpy as np
import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import fix_random_seed

from spacy_elmo.components.char_lstm import CharLSTMEmbed_v1

TEXTS = ["A", "naïve", "cat", "saw", "a", "\n", "cat", "x" * 60, "x" * 50]


@pytest.fixture
def model():
    fix_random_seed()
    built = CharLSTMEmbed_v1(width=8, char_width=5, rows=50)
    built.initialize()
    return built


def oracle(model, word):
    """Return the last output of each direction."""
    characters, lstm = model.layers
    ids = np.array([ord(letter) for letter in word[:48]], dtype="uint64")
    [states] = lstm.predict([characters.predict(ids)])
    return np.concatenate([states[-1, :4], states[0, 4:]])


def test_each_word_is_read_in_both_directions(model):
    """Docs of two vocabularies, empty Docs, repeated and long words."""
    docs = [Doc(Vocab(), words=TEXTS[:5]), Doc(Vocab()), Doc(Vocab(), words=TEXTS[5:])]
    found = model.predict(docs)
    assert [len(array) for array in found] == [5, 0, 4]
    expected = np.array([oracle(model, text) for text in TEXTS])
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert len(np.unique(expected, axis=0)) == 7
    assert model.predict([]) == [] and model.predict([Doc(Vocab())])[0].shape == (0, 8)


def test_gradients(model):
    """Those of a batch are the sum of those of its words; along a random direction, the loss has this slope."""
    vocab, random = Vocab(), np.random.default_rng(0)
    upstream = random.normal(size=(len(TEXTS), 8)).astype("float32")

    def loss():
        (output,) = model.predict([Doc(vocab, words=TEXTS)])
        return float((output.astype("float64") * upstream).sum())

    _, backprop = model([Doc(vocab, words=TEXTS[:4]), Doc(vocab, words=TEXTS[4:])], is_train=True)
    backprop([upstream[:4], upstream[4:]])
    names = [(node, name) for node in model.walk() for name in node.param_names]
    assert len(names) == 4
    for node, name in names:
        before, gradient = node.get_param(name).copy(), node.get_grad(name).copy()
        direction = random.normal(size=before.shape).astype("float32")
        losses = []
        for step in (-1e-2, 1e-2):
            node.set_param(name, before + step * direction)
            losses.append(loss())
        node.set_param(name, before)
        slope = (losses[1] - losses[0]) / 2e-2
        assert slope == pytest.approx(float((gradient * direction).sum()), rel=0.02, abs=0.02)
        assert np.abs(gradient).max() > 0.01

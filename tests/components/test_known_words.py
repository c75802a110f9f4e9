"""The embedding of known words."""

import numpy as np
import pytest
import spacy
from spacy.ml.models import MultiHashEmbed
from spacy.tokens import Doc
from thinc.api import fix_random_seed

from spacy_elmo.components.known_words import KnownWords_v1


def build(dropout=0.0):
    fix_random_seed()
    embed = MultiHashEmbed(width=6, attrs=["NORM"], rows=[50], include_static_vectors=False)
    model = KnownWords_v1(embed, dropout=dropout)
    model.initialize(X=[doc("a")])
    model.set_param("unknown", np.arange(6, dtype="float32"))
    return model


def doc(text):
    return Doc(spacy.blank("xx").vocab, words=text.split())


def test_words_are_known_after_training():
    model = build()
    unknown = np.tile(model.get_param("unknown"), (3, 1))
    np.testing.assert_array_equal(model.predict([doc("cats eat mice")])[0], unknown)
    model([doc("the mice"), doc(""), doc("dogs eat")], is_train=True)
    loaded = build().from_bytes(model.to_bytes())
    docs = [doc("cats eat mice"), doc(""), doc("The dogs")]
    for built in (model, model.copy(), loaded):
        first, empty, last = built.predict(docs)
        expected = model.layers[0].predict(docs)
        np.testing.assert_array_equal(first, [unknown[0], *expected[0][1:]])
        assert empty.shape == (0, 6)
        np.testing.assert_array_equal(last[1], expected[2][1])
    assert model.predict([]) == []


def test_a_new_training_forgets_the_words_of_the_last():
    model = build()
    model([doc("mice")], is_train=True)
    model.initialize()
    np.testing.assert_array_equal(model.predict([doc("mice")])[0], np.zeros((1, 6), "f"))


@pytest.mark.parametrize("dropout", [0.0, 0.4, 1.0])
def test_some_words_are_unknown_in_training(dropout):
    """The gradient of a word goes to its own vector or to that of unknown words."""
    model, docs = build(dropout), [doc("a b c " * 200)]
    [vectors], backprop = model(docs, is_train=True)
    [own] = model.layers[0].predict(docs)
    dropped = (vectors == model.get_param("unknown")).all(1)
    assert dropped.mean() == pytest.approx(dropout, abs=0.08)
    np.testing.assert_array_equal(vectors[~dropped], own[~dropped])
    d = np.random.default_rng(0).normal(size=vectors.shape).astype("float32")
    backprop([d])
    np.testing.assert_allclose(model.get_grad("unknown"), d[dropped].sum(0), atol=1e-4)
    alone = build()
    _, backprop_alone = alone(docs, is_train=True)
    backprop_alone([d * ~dropped[:, None]])
    pairs = zip(model.layers[0].walk(), alone.layers[0].walk(), strict=True)
    gradients = [(a.get_grad(n), b.get_grad(n)) for a, b in pairs for n in b.grad_names]
    assert gradients
    for found, expected in gradients:
        np.testing.assert_allclose(found, expected, atol=1e-5)

"""The layers of the nli model, and its scorer."""

import numpy as np
import pytest
import spacy
import torch
from numpy.testing import assert_allclose
from spacy.training import Example
from tasks.attention import attend
from tasks.nli.esim import Esim, pool
from tasks.nli.scorer import make_nli_scorer
from tasks.pairs import line_break, padded
from thinc.api import Model, fix_random_seed


def test_elmo_reads_the_two_apart():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    pair, premise, hypothesis = nlp.pipe(["a cat sat\nit ran", "a cat sat", "it ran"])
    assert_allclose(pair._.elmo[:3], premise._.elmo, atol=1e-5)
    assert_allclose(pair._.elmo[4:], hypothesis._.elmo, atol=1e-5)


@pytest.mark.parametrize("text", ["one sentence", "premise\n", "\nhypothesis", "\n"])
def test_no_pair(text):
    with pytest.raises(ValueError, match="is not two texts: .* line break"):
        line_break(spacy.blank("en").make_doc(text))


def test_gradient_of_the_vectors_by_differences():
    """The gradients of both texts equal finite differences of a weighted sum of the features."""
    fix_random_seed(0)
    random = np.random.default_rng(0)
    network = Esim(4, dropout=0.0).double()
    pairs = [(random.normal(size=(n, 4)), random.normal(size=(m, 4))) for n, m in ((3, 1), (1, 2))]
    carrier = Model("carrier", lambda model, X, is_train: (X, lambda d: d))
    inputs, unpadded = padded(carrier, pairs, True)
    features = network(*inputs.args)
    weights = torch.from_numpy(random.normal(size=tuple(features.shape)))
    (features * weights).sum().backward()
    arguments = [each.grad if each.requires_grad else each for each in inputs.args]
    gradients = unpadded(type(inputs)(args=tuple(arguments), kwargs={}))

    def total():
        return float((network(*padded(carrier, pairs, False)[0].args) * weights).sum().detach())

    for pair, gradient in zip(pairs, gradients, strict=True):
        for side, d_side in zip(pair, gradient, strict=True):
            assert d_side.shape == side.shape
            for place in np.ndindex(side.shape):
                before = side[place]
                side[place] = before + 1e-5
                high = total()
                side[place] = before - 1e-5
                slope = (high - total()) / 2e-5
                side[place] = before
                assert d_side[place] == pytest.approx(slope, abs=1e-5)


def test_attention_by_hand():
    """With equal similarities, the result is the mean of the tokens; with one much larger similarity, it is that
    token."""
    values = torch.tensor([[[2.0], [4.0], [100.0]]])
    present = torch.tensor([[True, True, False]])
    similarity = torch.tensor([[[1.0, 1.0, 50.0], [0.0, 90.0, 0.0]]])
    assert attend(similarity, values, present).flatten().tolist() == [3.0, 4.0]


def test_pooling_by_hand():
    x = torch.tensor([[[-2.0, 1.0], [-4.0, 5.0], [9.0, 9.0]]])
    assert pool(x, torch.tensor([[True, True, False]])).tolist() == [[-3.0, 3.0, -2.0, 5.0]]


def test_score_by_hand():
    nlp = spacy.blank("en")
    present = [("a", "a"), ("a", "a"), ("b", "a"), ("a", "b"), ("c", "c")]
    batch = []
    for guess, gold in present:
        docs = [nlp.make_doc("x") for _ in range(2)]
        docs[0].cats = {label: 0.6 if label == guess else 0.2 for label in "abc"}
        docs[1].cats = {label: float(label == gold) for label in "abc"}
        batch.append(Example(*docs))
    scores = make_nli_scorer()(batch)
    assert scores["nli_acc"] == 3 / 5
    assert scores["nli_per_type"] == {
        "a": pytest.approx({"p": 2 / 3, "r": 2 / 3, "f": 2 / 3}),
        "b": {"p": 0.0, "r": 0.0, "f": 0.0},
        "c": {"p": 1.0, "r": 1.0, "f": 1.0},
    }
    assert make_nli_scorer()([])["nli_acc"] is None

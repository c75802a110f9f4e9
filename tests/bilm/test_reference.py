"""The plain network and the fast one compute the same layers and the same gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.reference import ReferenceBiLM
from tests import tiny

SENTENCES = [["cat"], ["the", "naïve", "cat"], [], ["extraordinarily", "</S>", "a", "a"]]
CONFIGS = st.builds(
    tiny.config,
    layers=st.integers(1, 3),
    dim=st.sampled_from([4, 5]),  # 5 is the width of the projection
    skip=st.booleans(),
    square_projections=st.booleans(),
    cell_clip=st.sampled_from([None, 0.3]),
    proj_clip=st.sampled_from([None, 0.2]),
    forget_bias=st.sampled_from([0.0, 1.0]),
    activation=st.sampled_from(["relu", "tanh"]),
    highways=st.integers(0, 3),
    filters=st.sampled_from([((3, 5),), ((1, 2), (2, 3), (4, 4)), ((12, 1), (7, 2), (7, 1))]),
)
WORDS = st.sampled_from(["a", "cat", "", "naïve", "<S>", "x" * 60]) | st.text(max_size=4)


def reference_of(model):
    return ReferenceBiLM(model.config, dict(model.named_parameters()))


@torch.no_grad()
@settings(max_examples=60, deadline=None)
@given(CONFIGS, st.lists(st.lists(WORDS, max_size=6), min_size=1, max_size=5))
def test_same_layers(config, sentences):
    model = tiny.bilm(config)
    lengths = [len(words) for words in sentences]
    expected = tiny.read(model, sentences).layers.split(lengths, 1)
    layers = reference_of(model).layers(sentences)
    for got, wanted in zip(layers, expected, strict=True):
        assert got.shape == wanted.shape
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=0)


def test_same_gradients():
    model = tiny.bilm(tiny.config()).double()
    forward, backward = reference_of(model).contexts(SENTENCES)
    packed = model.forward_packed(*tiny.batch(model, SENTENCES))
    expected = packed.outputs[-1]
    assert forward.shape == backward.shape == expected[0].shape
    # The rows come in another order, which does not change a sum of squares.
    losses = (
        forward.square().sum() + 2 * backward.square().sum(),
        (expected[0].square().sum() + 2 * expected[1].square().sum()),
    )
    torch.testing.assert_close(*losses)
    gradients = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
    for got, want in zip(*gradients, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize(
    "config", [tiny.config(n_words=8), tiny.lexicon_config(n_words=0, word_dim=0)]
)
def test_byte_characters_alone(config):
    with pytest.raises(ValueError, match="only bytes as characters"):
        ReferenceBiLM(config, {})

"""The rival of the speed benchmark computes what we compute, or its speed would mean nothing."""

import pytest
import torch

from benchmarks.textbook import Textbook
from tests import tiny

SENTENCES = [["cat"], ["the", "naïve", "cat"], [], ["extraordinarily", "</S>", "a", "a"]]


@torch.no_grad()
@pytest.mark.parametrize("dim", [5, 7])
@pytest.mark.parametrize("skip", [True, False])
def test_same_layers(dim, skip):
    model = tiny.bilm(tiny.config(dim=dim, skip=skip, layers=3, activation="tanh", highways=2))
    ours = tiny.read(model, SENTENCES).layers.split([len(words) for words in SENTENCES], 1)
    for got, expected in zip(Textbook(model).layers(SENTENCES), ours, strict=True):
        torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


def test_same_gradients():
    model = tiny.bilm(tiny.config()).double()
    forward, backward = Textbook(model).predictions(SENTENCES)
    reading = model.read(*tiny.batch(model, SENTENCES))
    expected = reading.outputs[-1]
    assert forward.shape == backward.shape == expected[0].shape
    # The rows come in another order, which a sum of squares does not see.
    losses = (
        forward.square().sum() + 2 * backward.square().sum(),
        (expected[0].square().sum() + 2 * expected[1].square().sum()),
    )
    torch.testing.assert_close(*losses)
    gradients = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
    for got, want in zip(*gradients, strict=True):
        torch.testing.assert_close(got, want)

"""The maximum over time, compiled and by torch."""

import math

import pytest
import torch

from spacy_elmo.bilm.kernels import native as native
from spacy_elmo.bilm.kernels.pooling import maximum


@pytest.fixture(params=["native", "torch"], autouse=True)
def implementation(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(native, "library", dict)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 7, 5), (2, 4, 37)])
def test_value_and_gradient(dtype, shape):
    torch.manual_seed(0)
    features = torch.randn(*shape).to(dtype).requires_grad_()
    found, goal = maximum(features), torch.randn(shape[0], shape[2]).to(dtype)
    values, places = features.detach().max(1)
    assert torch.equal(found, values)
    (gradient,) = torch.autograd.grad(found, features, goal)
    expected = torch.zeros_like(features).scatter(1, places[:, None], goal[:, None])
    assert torch.equal(gradient, expected)


def test_the_first_of_equals_gets_the_gradient():
    features = torch.tensor([[[1.0], [2.0], [2.0]]], requires_grad=True)
    maximum(features).sum().backward()
    assert features.grad.flatten().tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("place", range(3))
def test_what_is_not_a_number_is_seen(place):
    features = torch.zeros(1, 3, 20)
    features[0, place, 4] = math.nan
    found = maximum(features.requires_grad_())
    assert found[0].isnan().nonzero().tolist() == [[4]]

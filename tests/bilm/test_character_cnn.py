"""The kernel of the character CNN is compared with matrix products in float64, its gradients with differences, and
a highway layer with numbers by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm import character_cnn
from spacy_elmo.bilm.character_cnn import Highway, maxima
from spacy_elmo.bilm.kernels.native import functions
from spacy_elmo.bilm.token_encoder import char_ids
from tests import tiny
from tests.oracle import Oracle
from tests.threads import torch_threads

DTYPES = [torch.float32, torch.bfloat16]
shapes = st.fixed_dictionaries(
    {
        "dim": st.integers(1, 40),
        "filters": st.lists(
            st.tuples(st.integers(1, 7), st.integers(1, 140)), min_size=1, max_size=4
        ),
        "lengths": st.lists(st.integers(7, 60), min_size=1, max_size=6),
    }
)


def needs(dtype):
    if dtype not in functions("convolution"):
        pytest.skip(f"no kernel for {dtype}")


def example(dim, filters, lengths):
    random = torch.Generator().manual_seed(dim)
    ids = torch.randint(0, 30, (len(lengths), 60), generator=random, dtype=torch.int32)
    weights = [torch.randn(width, dim, number, generator=random) for width, number in filters]
    biases = [torch.randn(number, generator=random) for _, number in filters]
    characters = torch.randn(30, dim, generator=random)
    return ids, torch.tensor(lengths), characters, weights, biases


def expected_maxima(ids, lengths, characters, filters, biases):
    """Return the maxima, and how much each exceeds the feature at the next position."""
    words = []
    for word, length in zip(ids, lengths.tolist(), strict=True):
        x = torch.nn.functional.embedding(word[:length].long(), characters)
        parts = []
        for weight, bias in zip(filters, biases, strict=True):
            # Not torch's convolution, which is slow in float64.
            windows = x.unfold(0, len(weight), 1).flatten(1)
            features = windows @ weight.transpose(0, 1).flatten(0, 1) + bias
            nothing = features.new_full((1, len(bias)), -torch.inf)
            parts.append(torch.cat([features, nothing]).topk(2, dim=0).values)
        words.append(torch.cat(parts, 1))
    first, second = torch.stack(words).unbind(1)
    return first, (first - second).detach()


def leaves(characters, filters, biases, dtype):
    parts = [characters.to(dtype), *(t.to(dtype) for t in (*filters, *biases))]
    parts = [t.clone().requires_grad_() for t in parts]
    count = len(filters)
    return parts, (parts[0], parts[1 : 1 + count], parts[1 + count :])


@settings(deadline=None, max_examples=40)
@given(shape=shapes, dtype=st.sampled_from(DTYPES))
def test_values_and_gradients(shape, dtype):
    needs(dtype)
    ids, lengths, *parameters = example(**shape)
    if dtype == torch.bfloat16:  # so that nothing is rounded
        parameters = [
            p.bfloat16().float() if torch.is_tensor(p) else [t.bfloat16().float() for t in p]
            for p in parameters
        ]
    wide, structured = leaves(*parameters, torch.float64)
    expected, lead = expected_maxima(ids, lengths, *structured)
    single, structured = leaves(*parameters, torch.float32)
    found = maxima(ids, lengths, *structured, "none", dtype)
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=1e-5)
    upstream = torch.randn(found.shape, generator=torch.Generator().manual_seed(0))
    upstream[:, ::3] = 0
    upstream[lead < 1e-3] = 0  # where the position of the maximum is a matter of rounding
    for got, wanted in zip(
        torch.autograd.grad(found, single, upstream),
        torch.autograd.grad(expected, wide, upstream.double()),
        strict=True,
    ):
        torch.testing.assert_close(got.double(), wanted, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads(dtype):
    needs(dtype)
    ids, lengths, *parameters = example(16, [(1, 20), (3, 70)], [7, 30, 60, 12, 9])
    results = []
    for threads in (1, 2, 3):
        with torch_threads(threads):
            single, structured = leaves(*parameters, torch.float32)
            found = maxima(ids, lengths, *structured, "none", dtype)
            results.append((found.detach(), *torch.autograd.grad(found.square().sum(), single)))
    for found in results[1:]:
        assert torch.equal(found[0], results[0][0])
        for got, wanted in zip(found, results[0], strict=True):
            torch.testing.assert_close(got, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_a_number_stays_none(dtype):
    needs(dtype)
    ids, lengths, characters, *rest = example(16, [(2, 20), (3, 10)], [20, 20])
    ids[0], ids[1, 9], characters[3] = 1, 3, torch.nan
    found = maxima(ids, lengths, characters, *rest, "none", dtype)
    assert found[0].isfinite().all() and found[1].isnan().all()


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_activations(activation):
    needs(torch.float32)
    ids, lengths, *parameters = example(16, [(1, 20), (3, 70)], [7, 30, 60, 12, 9])
    single, structured = leaves(*parameters, torch.float32)
    plain = maxima(ids, lengths, *structured, "none", torch.float32)
    found = maxima(ids, lengths, *structured, activation, torch.float32)
    expected = plain.double().relu() if activation == "relu" else plain.double().tanh()
    torch.testing.assert_close(found.double(), expected, atol=2e-7, rtol=0)
    upstream = torch.randn(found.shape, generator=torch.Generator().manual_seed(0))
    for got, wanted in zip(
        torch.autograd.grad(found, single, upstream),
        torch.autograd.grad(expected, single, upstream.double()),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


def test_fifty_positions():
    config = tiny.config(max_characters=50, filters=((1, 3), (7, 4)))
    model = tiny.bilm(config)
    oracle = Oracle(config, model.state_dict())
    words = ["x" * length for length in (0, 1, 40, 41, 42, 43, 47, 48, 49, 60)]
    found = model.encoder(model.token_ids(words)).detach()
    np.testing.assert_allclose(found, [oracle.token(w) for w in words], atol=1e-5)


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

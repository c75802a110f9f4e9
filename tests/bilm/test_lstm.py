"""One LSTM layer: its steps and its gradient are compared with autograd over a naive loop."""

import itertools

import pytest
import torch

from spacy_elmo.bilm.kernels import fused_lstm, native
from spacy_elmo.bilm.kernels.native import has_kernels
from spacy_elmo.bilm.lstm import LSTMLayer
from tests import tiny

ROWS = [4, 4, 3, 1, 1]
CLIPS = [(None, None), (0.3, 0.2), (0.3, None), (None, 0.2)]
WITH_AND_WITHOUT_PROJECTION = [7, 5]


def naive(layer, x, rows, h, c):
    """Compute the formulas of `bilm/lstm.py`, one sequence at a time."""
    first = [sum(rows[:step]) for step in range(len(rows))]
    y = {}
    last_h, last_c = h.clone(), c.clone()
    for direction, rank in itertools.product((0, 1), range(h.shape[1])):
        ht, ct = h[direction, rank], c[direction, rank]
        for step, n in enumerate(rows):
            if rank >= n:
                break
            row = first[step] + rank
            z = x[direction, row] @ layer.input[direction] + ht @ layer.recurrent[direction]
            i, j, f, o = (z + layer.bias[direction]).chunk(4)
            ct = (f + layer.forget_bias).sigmoid() * ct + i.sigmoid() * j.tanh()
            if layer.cell_clip is not None:
                ct = ct.clamp(-layer.cell_clip, layer.cell_clip)
            ht = o.sigmoid() * ct.tanh()
            if layer.projection is not None:
                ht = ht @ layer.projection[direction]
                if layer.proj_clip is not None:
                    ht = ht.clamp(-layer.proj_clip, layer.proj_clip)
            y[direction, row] = ht
        last_h[direction, rank], last_c[direction, rank] = ht, ct
    outputs = [torch.stack([y[d, row] for row in range(sum(rows))]) for d in (0, 1)]
    return torch.stack(outputs), last_h, last_c


def make(dim=7, clips=(0.3, 0.2), rows=ROWS, dtype=torch.float64, **fields):
    """Return a layer, its input, and a state that is not zero."""
    config = tiny.config(dim=dim, cell_clip=clips[0], proj_clip=clips[1], **fields)
    layer = tiny.bilm(config).lstm[0].to(dtype)
    torch.manual_seed(1)
    x = torch.randn(2, sum(rows), config.projection, dtype=dtype)
    h = torch.randn(2, rows[0], config.projection, dtype=dtype) * 0.1
    c = torch.randn(2, rows[0], dim, dtype=dtype) * 0.1
    return layer, x, h, c


@pytest.mark.parametrize("forget_bias", [0.0, 1.0])
@pytest.mark.parametrize("clips", CLIPS)
@pytest.mark.parametrize("dim", WITH_AND_WITHOUT_PROJECTION)
@pytest.mark.parametrize("graph", [False, True])
def test_equals_the_naive_loop(graph, dim, clips, forget_bias):
    layer, x, h, c = make(dim, clips, forget_bias=forget_bias)
    before = h.clone(), c.clone()
    with torch.set_grad_enabled(graph):
        y, last_h, last_c = layer(x, ROWS, h, c)
    assert torch.equal(h, before[0]) and torch.equal(c, before[1])
    assert y.requires_grad is graph
    assert not last_h.requires_grad and not last_c.requires_grad
    for got, expected in zip((y, last_h, last_c), naive(layer, x, ROWS, h, c), strict=True):
        torch.testing.assert_close(got, expected.detach(), atol=1e-12, rtol=0, check_stride=False)


@pytest.mark.parametrize("clips", CLIPS)
@pytest.mark.parametrize("dim", WITH_AND_WITHOUT_PROJECTION)
@pytest.mark.parametrize("rows", [ROWS, [3], [1, 1, 1], [5, 1]])
def test_every_gradient_equals_autograd(rows, dim, clips):
    layer, x, h, c = make(dim, clips, rows)
    inputs = [x.requires_grad_(), h.requires_grad_(), c.requires_grad_(), *layer.parameters()]
    fast = layer(x, rows, h, c)[0]
    slow = naive(layer, x, rows, h, c)[0]
    upstream = torch.randn_like(fast)
    expected = torch.autograd.grad(slow, inputs, upstream)
    for got, want in zip(torch.autograd.grad(fast, inputs, upstream), expected, strict=True):
        torch.testing.assert_close(got, want, atol=1e-11, rtol=1e-9)


def test_clips_are_active_in_these_tests():
    layer, x, h, c = make()
    y, _, last_c = naive(layer, x, ROWS, h, c)
    assert 0.1 < (y.abs() == 0.2).double().mean() < 0.9
    assert 0.1 < (last_c.abs() == 0.3).double().mean() < 0.9


def test_frozen_weights_pass_the_gradient_on():
    layer, x, h, c = make()
    layer.requires_grad_(False)
    x.requires_grad_()
    (got,) = torch.autograd.grad(layer(x, ROWS, h, c)[0].sum(), x)
    (want,) = torch.autograd.grad(naive(layer, x, ROWS, h, c)[0].sum(), x)
    torch.testing.assert_close(got, want)


def test_no_gradient_for_an_input_that_needs_none():
    layer, x, h, c = make()
    layer(x, ROWS, h, c)[0].sum().backward()
    assert x.grad is None
    assert all(parameter.grad is not None for parameter in layer.parameters())


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("dim", WITH_AND_WITHOUT_PROJECTION)
def test_float32_which_is_compiled(monkeypatch, dim, kept):
    if not kept:
        monkeypatch.setattr(fused_lstm, "MAX_KEPT_ROWS", 0)
    layer, x, h, c = make(dim, dtype=torch.float32)
    upstream = torch.randn_like(x)
    found, expected = layer(x, ROWS, h, c), naive(layer, x, ROWS, h, c)
    for got, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-6, rtol=0, check_stride=False)
    gradients = [
        torch.autograd.grad((y * upstream).sum(), list(layer.parameters()))
        for y in (found[0], expected[0])
    ]
    for got, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("size", [1, 3, 5, 100])
def test_blocks_of_steps_change_nothing(monkeypatch, size):
    layer, x, h, c = make()
    whole = layer(x, ROWS, h, c)
    monkeypatch.setattr(fused_lstm, "_ROWS_PER_BLOCK", size)
    for got, expected in zip(layer(x, ROWS, h, c), whole, strict=True):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("graph", [False, True])
def test_no_rows(graph):
    layer, x, h, c = make()
    with torch.set_grad_enabled(graph):
        y, last_h, last_c = layer(x[:, :0], [], h[:, :0], c[:, :0])
    assert y.shape == (2, 0, 5)
    assert last_h.shape == (2, 0, 5) and last_c.shape == (2, 0, 7)


# In bfloat16, 0.175 is rounded down.
@pytest.mark.parametrize("clips", [(3.0, 3.0), (None, 0.175)])
@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("dim", WITH_AND_WITHOUT_PROJECTION)
def test_bfloat16_is_close_and_leaves_float32(dim, kernels, clips, monkeypatch):
    if not kernels:
        monkeypatch.setattr(native, "library", lambda: None)
    layer, x, h, c = make(dim, clips, dtype=torch.float32)
    inputs = [x.requires_grad_(), *layer.parameters()]
    exact = layer(x, ROWS, h, c)
    expected = torch.autograd.grad(exact[0].square().sum(), inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = layer(x, ROWS, h, c)
        with torch.no_grad():
            served = layer(x, ROWS, h, c)
    gradients = torch.autograd.grad(rough[0].square().sum(), inputs)
    pairs = [*zip(rough, exact, strict=True), *zip(served, exact, strict=True)]
    for got, want in [*pairs, *zip(gradients, expected, strict=True)]:
        assert got.dtype == torch.float32
        # bfloat16 keeps 8 bits; errors of several steps and summands add up.
        assert (got - want).abs().max() < 0.02 * want.abs().max()
    assert not torch.equal(rough[0], exact[0])


@torch.no_grad()
def test_initial_values():
    """Glorot over the matrix [W_x ; W_h] with 2 x 64 rows, bias 0."""
    torch.manual_seed(0)
    layer = LSTMLayer(tiny.config(dim=32, projection=64))
    bound = (6 / (2 * 64 + 4 * 32)) ** 0.5
    assert float(layer.input.max()) == pytest.approx(bound, rel=0.01)
    assert float(layer.recurrent.min()) == pytest.approx(-bound, rel=0.01)
    assert float(layer.projection.max()) == pytest.approx((6 / (32 + 64)) ** 0.5, rel=0.01)
    assert (layer.bias == 0).all()


def test_backward_under_autocast_has_the_types_of_the_forward_pass():
    layer, x, h, c = make(dtype=torch.float32)
    loss, parameters = layer(x, ROWS, h, c)[0].square().sum(), list(layer.parameters())
    expected = torch.autograd.grad(loss, parameters, retain_graph=True)
    with torch.autocast("cpu", torch.bfloat16):
        found = torch.autograd.grad(loss, parameters)
    for got, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(got, wanted)


def kept_numbers(layer, x, rows, h, c):
    """Count the numbers in the tensors that a forward pass keeps for the backward pass."""
    kept = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        layer(x, rows, h, c)
    return sum(kept)


@pytest.mark.skipif(not has_kernels(torch.float32), reason="there are no kernels")
def test_a_long_forward_pass_keeps_no_gates(monkeypatch):
    rows = [1] * 400
    layer, x, h, c = make(rows=rows, dtype=torch.float32)
    gates = 2 * 400 * 4 * c.shape[2]
    monkeypatch.setattr(fused_lstm, "MAX_KEPT_ROWS", 400)
    assert kept_numbers(layer, x, rows, h, c) > gates
    monkeypatch.setattr(fused_lstm, "MAX_KEPT_ROWS", 399)
    assert kept_numbers(layer, x, rows, h, c) < gates / 4

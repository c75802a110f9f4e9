"""Products and their gradients are compared with float64. In float32, kernels compute bits that depend on no other
row."""

import pytest
import torch

from spacy_elmo.bilm.kernels import native
from spacy_elmo.bilm.kernels.matmul import matmul
from tests.threads import torch_threads

SIZES = [(0, 5, 3), (8, 0, 6), (8, 3, 0), (1, 5, 3), (3, 1, 1), (4, 5, 3), (17, 64, 33)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("transposed", [False, True])
def test_value_and_gradient(size, transposed):
    n, k, m = size
    torch.manual_seed(n)
    x, w = torch.randn(k, n).t() if transposed else torch.randn(n, k), torch.randn(k, m)
    w = torch.randn(m, k).t() if transposed else w
    x.requires_grad_()
    w.requires_grad_()
    found = matmul(x, w)
    assert found.shape == (n, m)
    goal = torch.randn(n, m)
    dx, dw = torch.autograd.grad(found, (x, w), goal)
    for got, expected in (
        (found, x.double() @ w.double()),
        (dx, goal.double() @ w.double().t()),
        (dw, x.double().t() @ goal.double()),
    ):
        torch.testing.assert_close(got.double(), expected.detach(), atol=1e-5, rtol=1e-5)


def test_autocast_rounds_the_factors():
    x, w = torch.randn(8, 4, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        found = matmul(x, w)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, x.bfloat16() @ w.bfloat16())
    gradients = torch.autograd.grad(found.float().sum(), (x, w))
    assert [gradient.dtype for gradient in gradients] == [torch.float32] * 2


def test_backward_under_autocast_has_the_types_of_the_forward_pass():
    x, w = torch.randn(8, 4, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    found, goal = matmul(x, w), torch.randn(8, 3)
    expected = torch.autograd.grad(found, (x, w), goal, retain_graph=True)
    with torch.autocast("cpu", torch.bfloat16):
        got = torch.autograd.grad(found, (x, w), goal)
    assert all(map(torch.equal, got, expected))


def in_order(x, w, bias):
    """Compute the sums by one fused multiply-add per number of the inner dimension, in ascending order."""
    sums = bias.double().expand(len(x), -1)
    for k in range(x.shape[1]):
        # The product is exact in float64, and of its sum only the last bit could be another one, which float32 lacks.
        sums = (x[:, k, None].double() * w[k].double() + sums).float().double()
    return sums.float()


@pytest.mark.skipif(not native.library(), reason="there is no compiler")
@pytest.mark.parametrize("size", [(7, 1), (40, 17), (300, 70), (600, 130)])
def test_the_same_bits_for_any_rows_kernels_and_threads(size, monkeypatch):
    k, m = size
    torch.manual_seed(k)
    x, w, bias = torch.randn(130, k), torch.randn(k, m), torch.randn(m)
    expected = in_order(x, w, bias)
    for kind in (*native.processors(), "portable"):
        monkeypatch.setenv(native.CHOICE, kind)
        for threads in (1, 3):
            with torch_threads(threads):
                assert torch.equal(matmul(x, w, bias), expected)
        for n in range(1, 130):
            assert torch.equal(matmul(x[-n:], w, bias), expected[-n:]), (kind, n)
        assert torch.equal(matmul(x, w.t().contiguous().t(), bias), expected)

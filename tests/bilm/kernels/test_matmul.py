"""Products, their gradients and prepacked weights are compared with float64. In float32, kernels compute bits that
depend on no other row."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.kernels import native
from spacy_elmo.bilm.kernels.matmul import PrepackedWeight, has_bfloat16, matmul
from spacy_elmo.bilm.kernels.native import weight_gradient
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


@pytest.mark.parametrize("inner", [3, 60])
def test_matrices_that_do_not_fit(inner):
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        matmul(torch.ones(2, inner), torch.ones(42, 5))


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
        for n in (*range(1, 20), *range(120, 130)):
            assert torch.equal(matmul(x[-n:], w, bias), expected[-n:]), (kind, n)
        assert torch.equal(matmul(x, w.t().contiguous().t(), bias), expected)


@pytest.mark.skipif(not native.library(), reason="there is no compiler")
@pytest.mark.parametrize("size", [(7, 1), (40, 17), (300, 70)])
def test_weights_of_float16_have_the_same_bits(size, monkeypatch):
    k, m = size
    x, w, bias = normal(30, k), normal(k, m, seed=1).half().float(), normal(m, seed=2)
    w[0, 0], w[-1, 0] = 2.0**-24, -65504.0  # the smallest and the largest number
    expected = in_order(x, w, bias)
    for kind in (*native.processors(), "portable"):
        monkeypatch.setenv(native.CHOICE, kind)
        matrix = PrepackedWeight(w, torch.float32)
        assert matrix.half is not None
        for n in range(1, 31):
            assert torch.equal(matrix(x[:n], bias), expected[:n]), (kind, n)
        w[0, 0] = 2.0**-25
        assert PrepackedWeight(w, torch.float32).half is None
        w[0, 0] = 2.0**-24


# Relative to the largest entry of the product.
BOUNDS = {torch.float32: 1e-6, torch.bfloat16: 2e-2}
SHAPES = [(5, 3), (3, 5), (64, 256), (256, 64), (1, 1), (300, 70)]


@pytest.mark.parametrize("rows", [1, 3, 4, 17, 64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", BOUNDS)
def test_prepacked(dtype, shape, rows):
    weight, x, bias = normal(*shape), normal(rows, shape[0], seed=1), normal(shape[1], seed=2)
    matrix = PrepackedWeight(weight, dtype)
    found = matrix(x.to(matrix.dtype))
    expected = x.double() @ weight.double()
    assert found.dtype == dtype and found.is_contiguous()
    assert (found.double() - expected).abs().max() <= BOUNDS[dtype] * expected.abs().max()
    if dtype == torch.float32:
        assert torch.equal(found, matmul(x, weight))
        assert torch.equal(matrix(x, bias), matmul(x, weight, bias))


DTYPES = [torch.float32, torch.bfloat16]


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def check(left, right, tolerance=1e-5):
    expected = left.double().t() @ right.double()
    scale = left.double().abs().t() @ right.double().abs() + 1e-30
    found = weight_gradient(left, right)
    assert found.dtype == torch.float32
    assert ((found - expected).abs() / scale).max() <= tolerance
    added = weight_gradient(left, right, into=found.clone())
    assert ((added - 2 * expected).abs() / scale).max() <= 2 * tolerance


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 70),
    k=st.integers(1, 150),
    m=st.integers(1, 150),
    dtype=st.sampled_from(DTYPES),
)
def test_weight_gradients_of_any_sizes(n, k, m, dtype):
    # Without the kernel torch rounds a product of bfloat16 to bfloat16.
    tolerance = 1e-5 if dtype in native.functions("weight_gradient") else 1e-2
    check(normal(n, k).to(dtype), normal(n, m, seed=1).to(dtype), tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_more_rows_and_columns_than_are_packed_at_a_time(implementation, dtype):
    check(normal(1500, 70).to(dtype), normal(1500, 600, seed=1).to(dtype), 1e-2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_a_wider_matrix(dtype):
    left, right = normal(33, 90).to(dtype), normal(33, 200, seed=1).to(dtype)
    # Without the kernel, torch may add up in another order when rows are further apart.
    tolerance = 1e-5 if dtype in native.functions("weight_gradient") else 1e-2
    check(left[:, 7:50], right[:, 3:120], tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_rows(implementation, dtype):
    left, right, ones = normal(0, 5).to(dtype), normal(0, 3).to(dtype), torch.ones(5, 3)
    assert torch.equal(weight_gradient(left, right), torch.zeros(5, 3))
    assert torch.equal(weight_gradient(left, right, into=ones), torch.ones(5, 3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_weight_gradients_in_any_number_of_threads(dtype):
    if dtype not in native.functions("weight_gradient"):
        pytest.skip("torch's products depend on the threads")
    left, right = normal(1200, 100).to(dtype), normal(1200, 700, seed=1).to(dtype)
    expected = weight_gradient(left, right)
    for threads in (2, 3):
        with torch_threads(threads):
            assert torch.equal(weight_gradient(left, right), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_weight_gradient_of_what_is_not_a_number(dtype):
    left, right = normal(9, 20).to(dtype), normal(9, 70, seed=1).to(dtype)
    left[3, 4] = torch.nan
    found = weight_gradient(left, right).isnan()
    assert found[4].all() and found.sum() == 70


CPU = torch.device("cpu")


AVX2 = {"avx2": True, "avx512_bf16": False, "amx_bf16": False}


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [(AVX2, False), ({**AVX2, "avx512_bf16": True}, True), ({"bf16": True}, True), ({}, None)],
)
def test_processors(monkeypatch, capabilities, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert has_bfloat16(CPU) is expected


def test_versions_of_torch_that_say_nothing(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert has_bfloat16(CPU) is None


@pytest.mark.parametrize("supported", [True, False])
def test_gpus(monkeypatch, supported):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported)
    assert has_bfloat16(torch.device("cuda")) is supported

"""Products of columns by columns are compared with float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.kernels import native
from spacy_elmo.bilm.kernels.matmul import weight_gradient
from tests.threads import torch_threads

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
def test_any_sizes(n, k, m, dtype):
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
def test_any_number_of_threads(dtype):
    if dtype not in native.functions("weight_gradient"):
        pytest.skip("torch's products depend on the threads")
    left, right = normal(1200, 100).to(dtype), normal(1200, 700, seed=1).to(dtype)
    expected = weight_gradient(left, right)
    for threads in (2, 3):
        with torch_threads(threads):
            assert torch.equal(weight_gradient(left, right), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_not_a_number(dtype):
    left, right = normal(9, 20).to(dtype), normal(9, 70, seed=1).to(dtype)
    left[3, 4] = torch.nan
    found = weight_gradient(left, right).isnan()
    assert found[4].all() and found.sum() == 70

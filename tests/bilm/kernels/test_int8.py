"""8-bit rows, by torch and by C, are compared with float64."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from spacy_elmo.bilm.kernels import native as native
from spacy_elmo.bilm.kernels.int8 import dequantize, quantize

SIZES = [(0, 3), (1, 1), (3, 7), (5, 64), (2, 1000)]


@pytest.mark.parametrize("size", SIZES)
def test_rows_within_half_a_step(implementation, size):
    x = torch.from_numpy(np.random.default_rng(size[1]).normal(size=size)).float()
    whole, scales = quantize(x)
    assert whole.dtype == torch.int8 and scales.shape == (size[0],)
    np.testing.assert_allclose(scales, x.abs().amax(1) / 127, rtol=1e-6)
    assert (whole.abs().amax(1) == 127).all()
    error = (whole.double() * scales[:, None].double() - x).abs()
    assert (error <= 0.5001 * scales[:, None]).all()


def test_a_row_of_zeros_is_zero(implementation):
    whole, scales = quantize(torch.tensor([[0.0, 0.0], [1.0, -4.0]]))
    assert whole.tolist() == [[0, 0], [32, -127]] and scales[0] == 0


@settings(max_examples=50)
@given(arrays.arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 40)),
                     elements=st.floats(-(2.0**99), 2.0**99, width=32, allow_subnormal=False)))  # fmt: skip
def test_both_ways_agree(x):
    found = quantize(torch.from_numpy(x))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "library", lambda: None)
        expected = quantize(torch.from_numpy(x))
    # A number halfway between two steps may go either way, because 127 / largest is rounded.
    assert int((found[0].int() - expected[0].int()).abs().max()) <= 1
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)


def test_a_row_does_not_depend_on_the_others(implementation):
    x = torch.randn(5, 37, generator=torch.Generator().manual_seed(0))
    whole, scales = quantize(x)
    for row in range(5):
        alone = quantize(x[row : row + 1])
        assert torch.equal(alone[0][0], whole[row]) and alone[1][0] == scales[row]


@pytest.mark.parametrize("size", SIZES)
def test_back_to_numbers(implementation, size):
    random = np.random.default_rng(0)
    sums = torch.from_numpy(random.integers(-(2**30), 2**30, size, dtype=np.int32))
    rows, columns = (torch.from_numpy(random.random(n)).float() for n in size)
    expected = sums.double() * rows[:, None].double() * columns.double()
    np.testing.assert_allclose(dequantize(sums.clone(), rows, columns), expected, rtol=1e-6)


@pytest.mark.parametrize("size", [3, 64, 1000])
@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_a_row_with_a_value_that_is_not_finite_has_no_scale(implementation, value, size):
    x = torch.ones(3, size)
    x[1, size // 2] = value
    whole, scales = quantize(x)
    assert scales.isnan().tolist() == [False, True, False]
    assert whole[[0, 2]].unique().tolist() == [127]

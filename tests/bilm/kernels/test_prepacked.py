"""Products of matrices that are converted and prepacked for inference are compared with float64."""

import pytest
import torch

from spacy_elmo.bilm.kernels import int8
from spacy_elmo.bilm.kernels.matmul import matmul
from spacy_elmo.bilm.kernels.prepacked import (
    Int8Weight,
    PackedWeight,
    prepack,
)

# Relative to the largest entry of the product.
BOUNDS = {"float32": 1e-6, "bfloat16": 2e-2, "int8": 3e-2}
SHAPES = [(5, 3), (3, 5), (64, 256), (256, 64), (1, 1)]


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rows", [1, 3, 4, 17, 64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("precision", BOUNDS)
def test_product(precision, shape, rows):
    weight, x = numbers(*shape), numbers(rows, shape[0], seed=1)
    matrix = prepack(weight, precision)
    found = matrix(x.to(matrix.dtype))
    expected = x.double() @ weight.double()
    assert found.dtype == matrix.dtype and found.is_contiguous()
    assert (found.double() - expected).abs().max() <= BOUNDS[precision] * expected.abs().max()


@pytest.mark.parametrize("shape", SHAPES)
def test_int8_is_exact_between_the_roundings(shape):
    weight, x = numbers(*shape), numbers(9, shape[0], seed=1)
    rows, row_scales = int8.quantize(x)
    columns, column_scales = int8.quantize(weight.t().contiguous())
    sums = rows.double() @ columns.double().t()
    expected = sums * row_scales.double()[:, None] * column_scales.double()
    torch.testing.assert_close(Int8Weight(weight)(x).double(), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("precision", BOUNDS)
def test_columns_and_rows_that_are_zero(precision):
    weight, x = numbers(8, 6), numbers(5, 8)
    weight[:, 2], x[3] = 0, 0
    matrix = prepack(weight, precision)
    found = matrix(x.to(matrix.dtype))
    assert not found[:, 2].any() and not found[3].any() and found.isfinite().all()


@pytest.mark.parametrize(
    "precision, message",
    [("float16", "for GPUs"), ("float64", "expected one of float32, bfloat16")],
)
def test_what_a_cpu_does_not_do(precision, message):
    with pytest.raises(ValueError, match=message):
        prepack(numbers(2, 2), precision)


def test_what_a_gpu_does_not_do():
    with pytest.raises(ValueError, match='on a GPU use "bfloat16"'):
        prepack(torch.empty(2, 2, device="meta"), "int8")
    assert prepack(torch.empty(2, 2, device="meta"), "float16").dtype == torch.float16


def test_int8_without_exact_sums(monkeypatch):
    """Weights have 7 bits, so that no sum of two products exceeds 16 bits."""
    monkeypatch.setattr(int8, "sums_are_exact", lambda: False)
    weight, x = numbers(64, 32), numbers(9, 64, seed=1)
    matrix = Int8Weight(weight)
    assert matrix._whole.abs().max() == 63
    expected = x.double() @ weight.double()
    assert (matrix(x).double() - expected).abs().max() <= 4e-2 * expected.abs().max()


def test_what_is_not_a_number_stays_none():
    weight, x = numbers(8, 6), numbers(5, 8)
    weight[3, 2], x[4, 0] = torch.nan, torch.nan
    missing = Int8Weight(weight)(x).isnan()
    assert missing[:, 2].all() and missing[4].all() and not missing[:4, :2].any()


def test_rows_of_any_strides():
    weight, x = numbers(8, 6), numbers(8, 5).t()
    torch.testing.assert_close(Int8Weight(weight)(x), Int8Weight(weight)(x.contiguous()))


@pytest.mark.parametrize("shape", [*SHAPES, (300, 70)])
@pytest.mark.parametrize("rows", [1, 5, 33])
def test_panels_give_the_bits_of_the_matrix(shape, rows):
    weight, x, bias = numbers(*shape), numbers(rows, shape[0], seed=1), numbers(shape[1], seed=2)
    matrix = prepack(weight, "float32")
    assert torch.equal(matrix(x), matmul(x, weight))
    if isinstance(matrix, PackedWeight):
        assert torch.equal(matrix(x, bias), matmul(x, weight, bias))

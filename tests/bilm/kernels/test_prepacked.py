"""Products of matrices that are converted and prepacked for inference are compared with float64."""

import pytest
import torch

from spacy_elmo.bilm.kernels.matmul import PrepackedWeight, matmul

# Relative to the largest entry of the product.
BOUNDS = {torch.float32: 1e-6, torch.bfloat16: 2e-2}
SHAPES = [(5, 3), (3, 5), (64, 256), (256, 64), (1, 1), (300, 70)]


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rows", [1, 3, 4, 17, 64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", BOUNDS)
def test_product(dtype, shape, rows):
    weight, x, bias = numbers(*shape), numbers(rows, shape[0], seed=1), numbers(shape[1], seed=2)
    matrix = PrepackedWeight(weight, dtype)
    found = matrix(x.to(matrix.dtype))
    expected = x.double() @ weight.double()
    assert found.dtype == dtype and found.is_contiguous()
    assert (found.double() - expected).abs().max() <= BOUNDS[dtype] * expected.abs().max()
    if dtype == torch.float32:
        assert torch.equal(found, matmul(x, weight))
        assert torch.equal(matrix(x, bias), matmul(x, weight, bias))

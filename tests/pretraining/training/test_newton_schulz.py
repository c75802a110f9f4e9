"""Nearly orthogonal matrices, beside the same polynomial in float64."""

import pytest
import torch

from spacy_elmo.pretraining.training import optimizers

BOTH = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
SHAPES = [(64, 64), (64, 90), (64, 100), (64, 256), (256, 64), (96, 1024)]


def nearly_orthogonal(matrix: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return optimizers.nearly_orthogonal(matrix[None], dtype)[0]


def polynomial(matrix: torch.Tensor) -> torch.Tensor:
    x = matrix.double() / matrix.double().norm()
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x


def with_singular_values(shape: tuple[int, int], values: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    left, right = (
        torch.linalg.qr(torch.randn(size, min(shape), generator=generator))[0] for size in shape
    )
    return left * values @ right.T


def error(result: torch.Tensor, expected: torch.Tensor) -> float:
    return float((result.double() - expected).norm() / expected.norm())


@BOTH
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_it_is_the_polynomial(shape, power, dtype):
    values = torch.arange(1.0, min(shape) + 1) ** -power
    matrix = with_singular_values(shape, values)
    result = nearly_orthogonal(matrix, dtype)
    assert result.dtype == dtype
    assert error(result, polynomial(matrix)) < {torch.bfloat16: 0.08, torch.float32: 1e-4}[dtype]


@BOTH
@pytest.mark.parametrize("decay", [5.0, 20.0, 80.0])
def test_rounding_is_small_or_no_worse_than_in_torch(decay, dtype):
    """The Gram matrix of so steep a spectrum has eigenvalues far below its rounding, which must not grow."""
    muon = pytest.importorskip("torch.optim._muon", reason="torch 2.9 was the first to have it")
    matrix = with_singular_values((256, 1024), torch.exp(-torch.arange(256.0) / decay))
    expected = polynomial(matrix)
    theirs = muon._zeropower_via_newtonschulz(matrix, (3.4445, -4.7750, 2.0315), 5, 1e-7)
    assert error(nearly_orthogonal(matrix, dtype), expected) < max(
        0.05, 1.1 * error(theirs, expected)
    )


@BOTH
def test_zero_stays_zero(dtype):
    assert not nearly_orthogonal(torch.zeros(64, 128), dtype).any()


@BOTH
@pytest.mark.parametrize("shape", SHAPES)
def test_matrices_do_not_depend_on_each_other(shape, dtype):
    both = torch.randn(2, *shape, generator=torch.Generator().manual_seed(1))
    both[1] *= 100
    found = optimizers.nearly_orthogonal(both, dtype)
    for matrix, result in zip(both, found, strict=True):
        torch.testing.assert_close(result, nearly_orthogonal(matrix, dtype), rtol=1e-2, atol=1e-2)

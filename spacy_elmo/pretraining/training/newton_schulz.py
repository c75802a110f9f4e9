"""Newton-Schulz iterations, which bring the singular values of a matrix near 1 and keep its singular
vectors."""

from __future__ import annotations

import torch
from torch import Tensor

# The coefficients of Jordan et al. 2024: an iteration maps each singular value s to a s + b s^3 + c s^5. The slope at 0
# is as steep as possible, and values between 0.7 and 1.2 stay there.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5
# Numbers of iterations on Gram matrices before each product with the flat matrix itself. Rounding to bfloat16 makes
# small eigenvalues of a Gram matrix negative, and these grow. After three iterations they are still small.
_GRAM_ITERATIONS = (3, 2)
# Least ratio of columns to rows for the use of Gram matrices. With a smaller ratio they save nothing.
_FLAT = 1.5


def nearly_orthogonal(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """Return matrices with the singular vectors of `matrices`, and with singular values between 0.7 and 1.2.

    A singular value that is less than about a thousandth of the norm of its matrix becomes larger, but stays
    below 0.7.

    The iterations are the same as in `torch.optim.Muon`: five times X <- (a + b R + c R^2) X with the Gram
    matrix R = X X^T and constants a, b, c.

    If X has at least 1.5 times as many columns as rows, the same result is computed with fewer operations.
    First the factors a + b R + c R^2 of several iterations are multiplied with each other. Between the
    iterations, R changes by R <- (a + b R + c R^2)^2 R, because the factors are symmetric and commute.

    Args:
        matrices: (matrices, rows, columns), of any float type.
        dtype: data type of the matrix products. bfloat16, which torch uses, is exact enough.

    Returns:
        Tensor of the same shape, of the type `dtype`.
    """
    _, rows, columns = matrices.shape
    if rows > columns:
        return nearly_orthogonal(matrices.mT, dtype).mT
    x = (matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)).to(dtype)
    return _by_gram_matrices(x) if columns >= _FLAT * rows else _by_products(x)


def _by_products(x: Tensor) -> Tensor:
    for _ in range(_ITERATIONS):
        x = torch.baddbmm(x, _without_shift(x @ x.mT), x, beta=_A)
    return x


def _by_gram_matrices(x: Tensor) -> Tensor:
    for iterations in _GRAM_ITERATIONS:
        gram = x @ x.mT
        product = factor = _factor(gram)
        for _ in range(iterations - 1):
            gram = factor @ (factor @ gram)
            factor = _factor(gram)
            product = factor @ product
        x = product @ x
    return x


def _factor(gram: Tensor) -> Tensor:
    """Return `_A` + `_B` R + `_C` R^2 for each Gram matrix R."""
    factor = _without_shift(gram)
    factor.diagonal(dim1=1, dim2=2).add_(_A)
    return factor


def _without_shift(gram: Tensor) -> Tensor:
    """Return `_B` R + `_C` R^2 for each Gram matrix R."""
    return torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C)

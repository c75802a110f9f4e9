"""The product of the columns of one matrix with those of another: the gradient of a weight matrix, over many rows."""

from __future__ import annotations

import torch
from torch import Tensor

from .native import functions
from .panels import padded

# As in weight_gradient.c: rows and columns that are packed at a time.
_ROWS, _COLUMNS = 1024, 256


def weight_gradient(left: Tensor, right: Tensor, into: Tensor | None = None) -> Tensor:
    """Return the (k, m) product of (n, k) transposed and (n, m), both of one type: float32, or float64 like they.

    A product of bfloat16 by torch is bfloat16 itself; this one is not rounded.

    Args:
        left, right: the numbers of a row lie side by side, or are copied.
        into: (k, m) float32, contiguous, to which the product is added; None: a new tensor.
    """
    if not left.is_cpu or (function := functions("weight_gradient").get(left.dtype)) is None:
        product = left.t() @ right
        product = product.to(torch.promote_types(product.dtype, torch.float32))
        return product if into is None else into.add_(product)
    left, right = (t if t.stride(1) == 1 else t.contiguous() for t in (left, right))
    (n, k), m = left.shape, right.shape[1]
    sums = torch.empty((k, m)) if into is None else into
    if not n:
        return sums if into is not None else sums.zero_()
    rows = min(n + n % 2, _ROWS)
    left_scratch = left.new_empty(padded(k) * rows)
    right_scratch = right.new_empty(padded(m, _COLUMNS) * rows)
    function(
        torch.get_num_threads(), n, left, left.stride(0), k, right, right.stride(0), m,
        sums, m, into is not None, left_scratch, right_scratch,
    )  # fmt: skip
    return sums

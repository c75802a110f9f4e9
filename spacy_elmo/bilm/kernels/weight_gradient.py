"""The gradient of a weight matrix: the transposed inputs of a layer, times the gradient of the outputs."""

from __future__ import annotations

import torch
from torch import Tensor

from .native import functions
from .panels import padded

# Rows and columns that are packed at once, as in weight_gradient.c.
_ROWS, _COLUMNS = 1024, 256


def weight_gradient(left: Tensor, right: Tensor, into: Tensor | None = None) -> Tensor:
    """Multiply the transpose of `left` by `right`. The product is not rounded to a type below float32.

    Args:
        left: the inputs of a layer, (rows, inputs).
        right: the gradient of the outputs, (rows, outputs), in the data type of `left`.
        into: contiguous float32 tensor (inputs, outputs) to which the product is added; None: a new tensor.

    Returns:
        (inputs, outputs) float32, or float64 for float64 matrices.
    """
    if not left.is_cpu or (function := functions("weight_gradient").get(left.dtype)) is None:
        product = left.t() @ right
        product = product.to(torch.promote_types(product.dtype, torch.float32))
        return product if into is None else into.add_(product)
    left, right = (t if t.stride(1) == 1 else t.contiguous() for t in (left, right))
    (n, k), m = left.shape, right.shape[1]
    # Not with torch's default type and device, which the user can change.
    sums = left.new_empty((k, m), dtype=torch.float32) if into is None else into
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

"""The exponentials of logits and their sums: the expensive half of a softmax."""

from __future__ import annotations

import torch
from torch import Tensor

from .native import address, native_function


def softmax_terms(logits: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute e^(logit + bias - largest) in each row, where `largest` is the row's largest logit + bias.

    Args:
        logits: (M, S), contiguous, in any float type, may hold -infinity; overwritten.
        bias: (S,) added to every row, float32 or float64.

    Returns:
        (M, S) the exponentials, in the memory and the type of `logits`; (M,) `largest`; (M,) the sum of the
        exponentials of each row. The largest of a row is 1 unless all its logits are -infinity.
    """
    if function := native_function("softmax_terms", logits, bias):
        scratch, (largest, sums) = torch.empty_like(bias), bias.new_empty((2, len(logits)))
        function(*logits.shape, *map(address, (logits, bias, scratch, largest, sums)))
        return logits, largest, sums
    raw = logits.to(bias.dtype) + bias
    largest = raw.amax(1).clamp_min_(torch.finfo(raw.dtype).min)
    sums = raw.sub_(largest[:, None]).exp_().sum(1)
    return logits.copy_(raw), largest, sums

"""Attention between two sentences of a batch, and the mask of their padding."""

import torch
from torch import Tensor


def mask(lengths: Tensor) -> Tensor:
    """Return (batch, longest) bool, True for positions with a token."""
    return torch.arange(int(lengths.max()))[None] < lengths[:, None]


def attend(similarity: Tensor, values: Tensor, present: Tensor) -> Tensor:
    """Return for each token of a sentence the mean vector of the other sentence, weighted by the softmax of similarity.

    Args:
        similarity: (batch, n, m).
        values: (batch, m, width).
        present: (batch, m) bool, false for padding.
    """
    weights = similarity.masked_fill(~present[:, None], -torch.inf).softmax(dim=2)
    return weights @ values

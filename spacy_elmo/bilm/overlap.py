"""The mean of the vectors that a token gets in several overlapping spans."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def write_means(target: Tensor, vectors: Tensor, tokens: np.ndarray) -> None:
    """Write the mean of the vectors of each token to `target`. Differentiable.

    The vectors of a token are added in their order, so the rounding of the mean does not depend on other
    tokens.

    Args:
        target: (layers, tokens, width). The values of tokens without a vector are not changed.
        vectors: (layers, N, width), N vectors for tokens.
        tokens: (N,) for each vector, the index of its token in `target`.
    """
    counts = np.bincount(tokens, minlength=target.shape[1])
    by_token = np.argsort(tokens, kind="stable")
    # How many vectors of the same token come before each one.
    before = np.empty_like(by_token)
    before[by_token] = np.arange(len(tokens)) - (np.cumsum(counts) - counts)[tokens[by_token]]
    turns = np.split(np.argsort(before, kind="stable"), np.cumsum(np.bincount(before))[:-1])
    for turn, words in enumerate(turns):
        rows, numbers, shares = (
            torch.from_numpy(each).to(target.device)
            for each in (tokens[words], words, counts[tokens[words]])
        )
        parts = vectors[:, numbers] / shares[:, None].to(vectors)
        # A zero to begin with would make +0 of -0.
        add = target.index_add_ if turn else target.index_copy_
        add(1, rows, parts)

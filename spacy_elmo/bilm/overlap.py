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
    counts, rest = np.bincount(tokens), np.arange(len(tokens))
    add = target.index_copy_  # because adding -0 to 0 gives +0
    while len(rest):
        rows, first = np.unique(tokens[rest], return_index=True)
        words = rest[first]  # the first of the remaining vectors of each token
        to_rows, from_words, shares = (
            torch.from_numpy(each).to(target.device) for each in (rows, words, counts[rows])
        )
        add(1, to_rows, vectors[:, from_words] / shares[:, None].to(vectors))
        rest, add = np.delete(rest, first), target.index_add_

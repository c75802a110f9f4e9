"""The softmax head of the language model, and the losses and log-probabilities that the head computes."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from .kernels.matmul import matmul, matmul_dtype
from .kernels.prepacked import MatmulWeight, convert
from .kernels.softmax_terms import row_products, softmax_terms
from .kernels.weight_gradient import weight_gradient

# Largest number of logits in a block: 16 MB, which fit into caches, and which the allocator keeps.
_LOGITS_PER_BLOCK = 1 << 22
_ROWS_PER_BLOCK = 1024


class Head(nn.Module):
    """Softmax over the vocabulary: logits = h W^T + b, with W and b shared by both directions (bilm-tf `training.py`).

    The gradients of the sampled loss are sparse: only the rows of the targets and of the negatives are
    stored.

    Args:
        words: V, the size of the vocabulary. The sampled loss requires a vocabulary that is sorted by decreasing
            frequency.
        width: P, the width of one direction's output.
    """

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(words, width))
        # A column, so that its sparse gradient has rows like the gradient of the weight.
        self.bias = nn.Parameter(torch.empty(words, 1))
        self._packed: MatmulWeight | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters as bilm-tf does: W is drawn from a normal distribution with variance 1 /
        width, b is 0."""
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5)
        nn.init.zeros_(self.bias)

    @torch.no_grad()
    def prepare_for_inference(self) -> Head:
        """Return a copy of the head for prediction only. Later changes of the parameters may have no effect
        on the copy."""
        other = copy.copy(self)
        other._packed = convert(self.weight.t(), torch.float32)
        return other

    @property
    def rows_per_block(self) -> int:
        """The number of rows that the full softmax processes together."""
        return max(1, min(_ROWS_PER_BLOCK, _LOGITS_PER_BLOCK // len(self.weight)))

    def sampled_loss(self, hidden: Tensor, targets: Tensor, negatives: Negatives) -> Tensor:
        """Return the sampled softmax loss of one direction, summed over rows (Jean et al. 2015; TensorFlow's
        `sampled_softmax_loss`).

        The softmax of a row is computed over the target of the row and S negatives. All rows share the
        negatives. If a negative is the target of a row, this row leaves out the negative. From each logit,
        the loss subtracts the logarithm of the expected count of the word in the sample.

        Args:
            hidden: (M, P) float.
            targets: (M,) the vocabulary index of each target word.
            negatives: the sample, shared by all rows.
        """
        drawn, log_counts = (t.to(hidden.device) for t in (negatives.rows, negatives.log_counts))
        weight = F.embedding(torch.cat([targets, drawn]), self.weight, sparse=True)
        bias = F.embedding(torch.cat([targets, drawn]), self.bias, sparse=True).squeeze(1)
        m = len(targets)
        true = row_products(hidden, weight[:m]) + bias[:m] - negatives.log_count(targets)
        hits = negatives.hits(targets)
        matrix = convert(weight[m:].detach().t(), matmul_dtype(hidden))
        others = _LogSumExp.apply(hidden, weight[m:], bias[m:] - log_counts, matrix, hits)
        return (torch.logaddexp(true, others) - true).sum()

    def full_loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of each row under the full softmax, in nats, (M,). Rows are processed in
        blocks to limit the memory.

        Args:
            hidden: (M, P) float.
            targets: (M,) the vocabulary index of each target word.
        """
        rows = self.rows_per_block
        matrix = self._packed or convert(self.weight.detach().t(), matmul_dtype(hidden))
        losses = [
            _LogSumExp.apply(block, self.weight, self.bias[:, 0], matrix, None)
            - row_products(block, F.embedding(block_targets, self.weight))
            - self.bias[block_targets, 0]
            for block, block_targets in zip(hidden.split(rows), targets.split(rows), strict=True)
        ]
        return torch.cat(losses) if losses else hidden.new_zeros(0)

    def log_softmax(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities of all words of the vocabulary, in nats, (M, V).

        Args:
            hidden: (M, P), a few rows of the output of the top layer.
        """
        weight = self.weight.t()
        logits = matmul(hidden, weight) if self._packed is None else self._packed(hidden)
        return log_softmax(logits.float() + self.bias[:, 0])


def log_softmax(scores: Tensor) -> Tensor:
    """Compute the log-softmax of each row of `scores`, (M, V) float32."""
    return scores - softmax_terms(scores.clone(), scores.new_zeros(scores.shape[1]))[2][:, None]


class _LogSumExp(torch.autograd.Function):
    """Logarithm of the sum of e^logit in each row, where logits = h W^T + b.

    The argument `matrix` is W^T, converted to the data type of the product h W^T. The argument `hits`
    contains (n, 2) pairs of a row and a column. The sum leaves out the logits at these pairs.

    Autograd would process the (M, S) logits about ten times. This function overwrites the logits with their
    exponentials, and the backward pass uses these exponentials. The backward pass does not scale the
    exponentials: it scales the rows of `hidden` and of its gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        matrix: MatmulWeight,
        hits: Tensor | None,
    ) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            logits = matrix(hidden.to(matrix.dtype))
            if hits is not None:
                logits[hits.unbind(1)] = -math.inf
            exponentials, sums, log_sums = softmax_terms(logits, bias.contiguous())
        ctx.save_for_backward(hidden, weight, exponentials, sums)
        return log_sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, exponentials, sums = ctx.saved_tensors
        scale = torch.where(sums > 0, gradient / sums, 0.0)[:, None]
        scaled = torch.cat([hidden * scale, scale], 1).to(exponentials.dtype)
        with torch.autocast(hidden.device.type, enabled=False):  # as in the forward pass
            if scaled.dtype == torch.float32:
                dweight = weight_gradient(exponentials, scaled)
            else:  # lower precision is enough here, and torch uses the processor's matrix instructions
                dweight = (exponentials.t() @ scaled).to(hidden.dtype)
            dhidden = matmul(exponentials, weight.to(scaled.dtype)).to(hidden.dtype) * scale
        return dhidden, dweight[:, :-1], dweight[:, -1], None, None


class Negatives:
    """The negative words of a sampled softmax: S distinct vocabulary rows, drawn log-uniformly.

    The probability of row k is P(k) = log((k + 2) / (k + 1)) / log(V + 1). Rows are drawn until S different
    rows are found, as in TensorFlow's `log_uniform_candidate_sampler(unique=True)`. After n draws, the
    expected count of row k is 1 - (1 - P(k))^n.

    Args:
        words: V, the size of the vocabulary.
        number: S, from 1 to V.
        random: the random number generator.

    Raises:
        ValueError: S is not between 1 and V.
    """

    def __init__(self, words: int, number: int, random: np.random.Generator) -> None:
        if not 1 <= number <= words:
            raise ValueError(
                f"Cannot draw {number} negatives from a vocabulary of {words} words: choose 1 to {words}"
            )
        self._words = words
        rows, self.tries = _draw(words, number, random)
        """Number of draws, n, until S different rows were found."""
        self.rows = torch.from_numpy(rows)
        """The vocabulary rows of the sample, (S,) int64."""
        self._sorted, self._order = self.rows.sort()
        self.log_counts = self.log_count(self.rows)
        """The logarithm of the expected count of each row of the sample, (S,)."""

    def hits(self, targets: Tensor) -> Tensor:
        """Find the negatives that are the same word as a target.

        Returns:
            (n, 2) the index of the target (0 to M - 1) and of the negative (0 to S - 1), for each match.
        """
        on_cpu = targets.cpu().contiguous()
        positions = torch.searchsorted(self._sorted, on_cpu).clamp_(max=len(self.rows) - 1)
        hits = torch.nonzero(self._sorted[positions] == on_cpu)[:, 0]
        return torch.stack([hits, self._order[positions[hits]]], 1).to(targets.device)

    def log_count(self, rows: Tensor) -> Tensor:
        """Return the logarithm of the expected count of each word in n draws: float32, shape of `rows`.

        Args:
            rows: row numbers of the words in W.
        """
        p = torch.log1p(1 / (rows.double() + 1)) / math.log(self._words + 1)
        return (-torch.expm1(self.tries * torch.log1p(-p))).log().float()


def _draw(words: int, number: int, random: np.random.Generator) -> tuple[np.ndarray, int]:
    """Draw random rows of a vocabulary of size `words` until S = `number` rows are distinct. Return these
    rows, (S,), and how many draws this took, with the repeated rows."""
    drawn = np.empty(0, dtype=np.int64)
    while True:
        more = np.exp(random.random(2 * number) * math.log(words + 1)).astype(np.int64) - 1
        # Rounding can turn the largest random numbers into the row after the last.
        drawn = np.concatenate([drawn, np.minimum(more, words - 1)])
        # `first` is the first draw of each row. TensorFlow would stop at the S-th smallest of these.
        rows, first = np.unique(drawn, return_index=True)
        if len(rows) >= number:
            kept = np.argsort(first)[:number]
            return rows[kept], int(first[kept[-1]]) + 1
        if len(drawn) > 200 * number:
            # S is nearly V, so drawing until the rarest words appear would take too long.
            rest = random.permutation(np.setdiff1d(np.arange(words), rows))
            return np.concatenate([rows, rest[: number - len(rows)]]), len(drawn)

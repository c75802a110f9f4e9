"""The next-word head of the language model: one softmax, shared by both directions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from .kernels.matmul import matmul
from .kernels.softmax_terms import softmax_terms

# A block of logits is at most this large: 16 MB, which caches hold and the allocator keeps.
_LOGITS_PER_BLOCK = 1 << 22
_ROWS_PER_BLOCK = 1024


class Head(nn.Module):
    """Softmax over the vocabulary: logits = h W^T + b, with W and b shared by both directions (bilm-tf `training.py`).

    The gradients of the sampled loss are sparse: a step touches the rows of its targets and its negatives.

    Args:
        words: V, the size of the vocabulary, in the order of falling frequency (the sampler counts on it).
        width: P, the width of one direction's output.
    """

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(words, width))
        # A column, so that its sparse gradient has rows as the weight's has.
        self.bias = nn.Parameter(torch.empty(words, 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """bilm-tf's start: W of variance 1 / width, b 0."""
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5)
        nn.init.zeros_(self.bias)

    @property
    def rows_per_block(self) -> int:
        """Of how many rows the full softmax is computed at a time."""
        return max(1, min(_ROWS_PER_BLOCK, _LOGITS_PER_BLOCK // len(self.weight)))

    def sampled_loss(self, hidden: Tensor, targets: Tensor, negatives: Negatives) -> Tensor:
        """Sum over rows of the sampled softmax loss of one direction (Jean et al. 2015; TensorFlow's
        `sampled_softmax_loss`).

        Every row meets its own target and the same S negatives; each logit is lowered by the log of its
        expected count, and a negative that is the row's target is left out.

        Args:
            hidden: (M, P) float.
            targets: (M,) vocabulary rows.
            negatives: the draw that all rows share.
        """
        drawn, log_counts = (t.to(hidden.device) for t in (negatives.rows, negatives.log_counts))
        weight = F.embedding(torch.cat([targets, drawn]), self.weight, sparse=True)
        bias = F.embedding(torch.cat([targets, drawn]), self.bias, sparse=True).squeeze(1)
        m = len(targets)
        true = (hidden * weight[:m]).sum(1) + bias[:m] - negatives.log_count(targets)
        hits = negatives.hits(targets)
        others = _LogSumExp.apply(hidden, weight[m:], bias[m:] - log_counts, hits)
        return (torch.logaddexp(true, others) - true).sum()

    def full_loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """(M,) cross-entropy of each row under the full softmax, in nats; in blocks, so that memory is bounded.

        Args:
            hidden: (M, P) float.
            targets: (M,) vocabulary rows.
        """
        rows = self.rows_per_block
        losses = [
            _LogSumExp.apply(block, self.weight, self.bias[:, 0], None)
            - (block * F.embedding(goal, self.weight)).sum(1)
            - self.bias[goal, 0]
            for block, goal in zip(hidden.split(rows), targets.split(rows), strict=True)
        ]
        return torch.cat(losses) if losses else hidden.new_zeros(0)

    def log_softmax(self, hidden: Tensor) -> Tensor:
        """(M, V) log-probability of every word after each row of `hidden` (M, P), in nats. The caller bounds M."""
        return F.log_softmax(matmul(hidden, self.weight.t()).float() + self.bias[:, 0], dim=1)


class _LogSumExp(torch.autograd.Function):
    """Row by row the log of the sum of e^logit, logits = h W^T + b without `hits`: (n, 2) rows and columns, or None.

    Autograd would walk through (M, S) numbers some ten times; this leaves the exponentials where the logits were, and
    the backward pass multiplies with them as they are: what scales a row is applied to `hidden` instead.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, hits: Tensor | None
    ) -> Tensor:
        device = hidden.device.type
        low = (
            torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        )
        h, w = hidden.to(low), weight.to(low)
        with torch.autocast(device, enabled=False):
            logits = matmul(h, w.t())
            if hits is not None:
                logits[hits.unbind(1)] = -math.inf
            raised, largest, sums = softmax_terms(logits, bias.contiguous())
        ctx.save_for_backward(hidden, w, raised, sums)
        return largest + sums.log()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        hidden, w, raised, sums = ctx.saved_tensors
        scale = torch.where(sums > 0, gradient / sums, 0.0)[:, None]
        scaled = torch.cat([hidden * scale, scale], 1).to(w.dtype)
        with torch.autocast(hidden.device.type, enabled=False):  # as in the forward pass
            dweight = matmul(raised.t(), scaled).to(hidden.dtype)
            dhidden = matmul(raised, w).to(hidden.dtype) * scale
        return dhidden, dweight[:, :-1], dweight[:, -1], None


class Negatives:
    """S distinct vocabulary rows, drawn log-uniformly: P(k) = log((k + 2) / (k + 1)) / log(V + 1).

    As TensorFlow's `log_uniform_candidate_sampler(unique=True)`: rows are drawn until S different ones are
    together, and the number of tries n gives each row's expected count, 1 - (1 - P(k))^n.

    Args:
        words: V.
        number: S; 1 to V.
        random: the source of the draw.
    """

    def __init__(self, words: int, number: int, random: np.random.Generator) -> None:
        if not 1 <= number <= words:
            raise ValueError(
                f"{number} negatives from a vocabulary of {words} words: 1 to {words} are possible"
            )
        self._words = words
        rows, self.tries = _draw(words, number, random)
        """n, until S different rows were together."""
        self.rows = torch.from_numpy(rows)
        """(S,) int64."""
        self._sorted, self._order = self.rows.sort()
        self.log_counts = self.log_count(self.rows)
        """(S,) log of the expected counts."""

    def hits(self, targets: Tensor) -> Tensor:
        """(n, 2) at which of M targets which of the S negatives is the target itself."""
        goals = targets.cpu().contiguous()
        found = torch.searchsorted(self._sorted, goals).clamp_(max=len(self.rows) - 1)
        rows = torch.nonzero(self._sorted[found] == goals)[:, 0]
        return torch.stack([rows, self._order[found[rows]]], 1).to(targets.device)

    def log_count(self, rows: Tensor) -> Tensor:
        """Log of the expected count of any rows under this draw: float32, of their shape."""
        p = torch.log1p(1 / (rows.double() + 1)) / math.log(self._words + 1)
        return (-torch.expm1(self.tries * torch.log1p(-p))).log().float()


def _draw(words: int, number: int, random: np.random.Generator) -> tuple[np.ndarray, int]:
    drawn = np.empty(0, dtype=np.int64)
    while True:
        more = np.exp(random.random(2 * number) * math.log(words + 1)).astype(np.int64) - 1
        # Rounding can lift the largest random numbers to the row after the last.
        drawn = np.concatenate([drawn, np.minimum(more, words - 1)])
        # The first time that each row was drawn; the S-th smallest of these is where TensorFlow would stop.
        rows, first = np.unique(drawn, return_index=True)
        if len(rows) >= number:
            kept = np.argsort(first)[:number]
            return rows[kept], int(first[kept[-1]]) + 1
        if len(drawn) > 200 * number:
            # Nearly the whole vocabulary is asked for: waiting for its rarest words would not end soon.
            rest = random.permutation(np.setdiff1d(np.arange(words), rows))
            return np.concatenate([rows, rest[: number - len(rows)]]), len(drawn)

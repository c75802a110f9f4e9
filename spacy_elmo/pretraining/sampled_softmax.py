"""The sampled softmax, which makes a training step cheap: the softmax over the target word and a few random words.
With a teacher, the target is a mixture of the word and the teacher's prediction."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from ..bilm.head import Head, LogSumExp, row_products, softmax_terms, transposed_product
from ..bilm.kernels.matmul import PrepackedWeight, matmul, matmul_dtype

# A teacher's probabilities make the gradient less noisy than single words. But they are not exact, so the words keep a
# share.
_TEACHER_SHARE = 0.8


class SampledProbabilities(NamedTuple):
    """Probabilities of M target words and of S negative samples, which all targets share."""

    targets: Tensor
    """Probability of each target word, (M,)."""
    terms: Tensor
    """Probability of each sample, divided by the scale of its row, (M, S). 0 if it is the target word itself."""
    scale: Tensor
    """Scale of each row, (M,)."""


def sampled_loss(
    head: Head,
    hidden: Tensor,
    targets: Tensor,
    negatives: Negatives,
    teacher: SampledProbabilities | None = None,
) -> Tensor:
    """Return the sampled softmax loss of one direction, summed over M target words (Jean et al. 2015;
    TensorFlow's `sampled_softmax_loss`).

    The softmax is computed over the target word and S negative samples, which all targets share. A sample that is
    the target word itself is left out. From each logit, the loss subtracts the logarithm of the expected count of
    the word among the samples. The gradients of the head are sparse.

    Args:
        head: the softmax layer, whose vocabulary is sorted by decreasing frequency.
        hidden: (M, P) float, the outputs of the top LSTM layer.
        targets: (M,) the vocabulary index of each target word.
        teacher: the probabilities of a teacher for the same targets and samples. The loss is then the cross-entropy
            to a mixture of them, with the share `_TEACHER_SHARE`, and the target word.
    """
    drawn, log_counts = (t.to(hidden.device) for t in (negatives.rows, negatives.log_counts))
    weight = F.embedding(torch.cat([targets, drawn]), head.weight, sparse=True)
    bias = F.embedding(torch.cat([targets, drawn]), head.bias, sparse=True).squeeze(1)
    m = len(targets)
    true = row_products(hidden, weight[:m]) + bias[:m] - negatives.log_count(targets)
    hits = negatives.hits(targets)
    matrix = PrepackedWeight(weight[m:].detach().t(), matmul_dtype(hidden))
    others = LogSumExp.apply(hidden, weight[m:], bias[m:] - log_counts, matrix, hits)
    expected = true
    if teacher is not None:
        samples = _ExpectedLogit.apply(hidden, weight[m:], bias[m:] - log_counts, *teacher[1:])
        expected = true.lerp(teacher.targets * true + samples, _TEACHER_SHARE)
    return (torch.logaddexp(true, others) - expected).sum()


@torch.no_grad()
def sampled_probabilities(
    head: Head, hidden: Tensor, targets: Tensor, negatives: Negatives
) -> SampledProbabilities:
    """Return the probabilities that the sampled softmax gives to each target word and to the samples. They
    have no gradient. For the arguments, see `sampled_loss`."""
    drawn, log_counts = (t.to(hidden.device) for t in (negatives.rows, negatives.log_counts))
    bias = head.bias[:, 0]
    true = row_products(hidden, head.weight[targets]) + bias[targets] - negatives.log_count(targets)
    logits = matmul(hidden, head.weight[drawn].t())
    logits[negatives.hits(targets).unbind(1)] = -math.inf
    terms, sums, log_sums = softmax_terms(logits, bias[drawn] - log_counts)
    log_total = torch.logaddexp(true, log_sums)
    scale = torch.where(sums > 0, (log_sums - log_total).exp() / sums, 0.0)
    return SampledProbabilities((true - log_total).exp(), terms, scale)


class _ExpectedLogit(torch.autograd.Function):
    """Autograd function: the sum over the samples of probability times logit, for each row of h W^T + b.

    The arguments `hidden` (h), `weight` (W) and `bias` (b) are those of `LogSumExp`, and `terms` and `scale`
    are those of `SampledProbabilities`. The logits are never computed, because p (h W^T + b) = (p W) h + p b.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, terms: Tensor, scale: Tensor
    ) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            samples = torch.cat([weight, bias[:, None]], 1).to(terms.dtype)
            means = matmul(terms, samples).to(hidden.dtype) * scale[:, None]
        ctx.save_for_backward(hidden, terms, scale, means)
        return row_products(hidden, means[:, :-1]) + means[:, -1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        hidden, terms, scale, means = ctx.saved_tensors
        rows = (gradient * scale)[:, None]
        dsamples = transposed_product(terms, torch.cat([hidden * rows, rows], 1))
        return means[:, :-1] * gradient[:, None], dsamples[:, :-1], dsamples[:, -1], None, None


class Negatives:
    """Negative samples for a sampled softmax: S distinct words of the vocabulary, drawn log-uniformly.

    P(k) = log((k + 2) / (k + 1)) / log(V + 1) is the probability of the word with the index k of V words. Words are
    drawn until S different words are found, as in TensorFlow's `log_uniform_candidate_sampler(unique=True)`. After
    n draws, the expected count of word k among the samples is 1 - (1 - P(k))^n.

    Args:
        words: V, the size of the vocabulary.
        number: S, from 1 to V.
    """

    def __init__(self, words: int, number: int, random: np.random.Generator) -> None:
        self._words = words
        rows, self.tries = _draw(words, number, random)
        """Number of draws, n, until S different rows were found."""
        self.rows = torch.from_numpy(rows)
        """The vocabulary rows of the sample, (S,) int64."""
        self._sorted, self._order = self.rows.sort()
        self.log_counts = self.log_count(self.rows)
        """The logarithm of the expected count of each row of the sample, (S,)."""

    def hits(self, targets: Tensor) -> Tensor:
        """Return the index of the target and of the sample for each sample that is the same word as a target,
        (matches, 2)."""
        on_cpu = targets.cpu().contiguous()
        positions = torch.searchsorted(self._sorted, on_cpu).clamp_(max=len(self.rows) - 1)
        hits = torch.nonzero(self._sorted[positions] == on_cpu)[:, 0]
        return torch.stack([hits, self._order[positions[hits]]], 1).to(targets.device)

    def log_count(self, rows: Tensor) -> Tensor:
        """Return the logarithm of the expected count of each word (vocabulary index) among the samples, float32."""
        p = torch.log1p(1 / (rows.double() + 1)) / math.log(self._words + 1)
        return (-torch.expm1(self.tries * torch.log1p(-p))).log().float()


def _draw(words: int, number: int, random: np.random.Generator) -> tuple[np.ndarray, int]:
    """Draw until `number` different words are found. Return their vocabulary indices, (number,), and the number of
    draws."""
    drawn = np.empty(0, dtype=np.int64)
    while True:
        more = np.exp(random.random(2 * number) * math.log(words + 1)).astype(np.int64) - 1
        # Rounding can turn the largest random numbers into the row after the last.
        drawn = np.concatenate([drawn, np.minimum(more, words - 1)])
        order = np.arange(len(drawn))
        first = np.full(words, len(drawn))
        np.minimum.at(first, drawn, order)
        new = np.flatnonzero(first[drawn] == order)
        if len(new) >= number:
            return drawn[new[:number]], int(new[number - 1]) + 1
        if len(drawn) > 200 * number:
            # S is nearly V, so drawing until the rarest words appear would take too long.
            rest = random.permutation(np.setdiff1d(np.arange(words), drawn))
            return np.concatenate([drawn[new], rest[: number - len(new)]]), len(drawn)

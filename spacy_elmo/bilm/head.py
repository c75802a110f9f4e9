"""The softmax layer of the language model (its head), which computes losses and log-probabilities."""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

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


class Head(nn.Module):
    """Softmax layer over the vocabulary: logits = h W^T + b, where h is an output of the top LSTM layer.

    Both directions share W and b (bilm-tf `training.py`). Each row of W belongs to one word. The gradients of
    the sampled loss are sparse: only the rows of the target words and of the negative samples are stored.

    Args:
        words: V, the size of the vocabulary. The sampled loss requires a vocabulary that is sorted by
            decreasing frequency.
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
        """Initialize the parameters as bilm-tf does: the weights are drawn from a normal distribution with
        variance 1 / width, and the bias is 0."""
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5)
        nn.init.zeros_(self.bias)

    @torch.no_grad()
    def prepare_for_inference(self) -> Head:
        """Return a copy of the layer for prediction only. Later changes of the parameters may have no effect
        on the copy."""
        other = copy.copy(self)
        other._packed = convert(self.weight.t(), torch.float32)
        return other

    @property
    def rows_per_block(self) -> int:
        """Number of predictions for which the full softmax computes logits at once."""
        return max(1, min(_ROWS_PER_BLOCK, _LOGITS_PER_BLOCK // len(self.weight)))

    def sampled_loss(
        self,
        hidden: Tensor,
        targets: Tensor,
        negatives: Negatives,
        teacher: SampledProbabilities | None = None,
    ) -> Tensor:
        """Return the sampled softmax loss of one direction, summed over M target words (Jean et al. 2015;
        TensorFlow's `sampled_softmax_loss`).

        The softmax is computed over the target word and S negative samples, which all targets share. A sample
        that is the target word itself is left out. From the logit of each word, the loss subtracts the
        logarithm of the expected count of the word among the samples.

        With a teacher, the loss is the cross-entropy to a mixture of two distributions: the probabilities of
        the teacher with the share `_TEACHER_SHARE`, and the target word with the rest.

        Args:
            hidden: (M, P) float, the outputs of the top LSTM layer, of width P, one for each target.
            targets: (M,) the vocabulary index of each target word.
            negatives: the negative samples.
            teacher: the probabilities of a teacher, for the same targets and samples.
        """
        drawn, log_counts = (t.to(hidden.device) for t in (negatives.rows, negatives.log_counts))
        weight = F.embedding(torch.cat([targets, drawn]), self.weight, sparse=True)
        bias = F.embedding(torch.cat([targets, drawn]), self.bias, sparse=True).squeeze(1)
        m = len(targets)
        true = row_products(hidden, weight[:m]) + bias[:m] - negatives.log_count(targets)
        hits = negatives.hits(targets)
        matrix = convert(weight[m:].detach().t(), matmul_dtype(hidden))
        others = _LogSumExp.apply(hidden, weight[m:], bias[m:] - log_counts, matrix, hits)
        expected = true
        if teacher is not None:
            samples = _ExpectedLogit.apply(hidden, weight[m:], bias[m:] - log_counts, *teacher[1:])
            expected = true.lerp(teacher.targets * true + samples, _TEACHER_SHARE)
        return (torch.logaddexp(true, others) - expected).sum()

    @torch.no_grad()
    def sampled_probabilities(
        self, hidden: Tensor, targets: Tensor, negatives: Negatives
    ) -> SampledProbabilities:
        """Return the probabilities that the sampled softmax gives to each target word and to the samples. They
        have no gradient. For the arguments, see `sampled_loss`."""
        drawn, log_counts = (t.to(hidden.device) for t in (negatives.rows, negatives.log_counts))
        bias = self.bias[:, 0]
        true = (
            row_products(hidden, self.weight[targets])
            + bias[targets]
            - negatives.log_count(targets)
        )
        logits = matmul(hidden, self.weight[drawn].t())
        logits[negatives.hits(targets).unbind(1)] = -math.inf
        terms, sums, log_sums = softmax_terms(logits, bias[drawn] - log_counts)
        log_total = torch.logaddexp(true, log_sums)
        scale = torch.where(sums > 0, (log_sums - log_total).exp() / sums, 0.0)
        return SampledProbabilities((true - log_total).exp(), terms, scale)

    def full_loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of each of M target words under the full softmax, in nats, (M,). The
        targets are processed in blocks to limit the memory.

        Args:
            hidden: (M, P) float, the outputs of the top LSTM layer, of width P, one for each target.
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
        """Return the log-probabilities of all V words of the vocabulary for M predictions, in nats, (M, V).

        Args:
            hidden: (M, P), a few outputs of the top LSTM layer; P: width.
        """
        weight = self.weight.t()
        logits = matmul(hidden, weight) if self._packed is None else self._packed(hidden)
        return log_softmax(logits.float() + self.bias[:, 0])


def log_softmax(scores: Tensor) -> Tensor:
    """Compute the log-softmax of each row of `scores`, a float32 matrix."""
    return scores - softmax_terms(scores.clone(), scores.new_zeros(scores.shape[1]))[2][:, None]


class _LogSumExp(torch.autograd.Function):
    """Autograd function: the logarithm of the sum of e^logit in each row of the logits h W^T + b.

    The argument `hidden` is h, (M, P), and `weight` is W, (S, P), for M predictions, S words and width P.
    `matrix` is W^T, converted to the data type of the product h W^T. `hits` contains pairs of a row and a
    column, (pairs, 2). The sum leaves out the logits at these pairs.

    Autograd would process the (M, S) logits about ten times. This function overwrites the logits with their
    exponentials, and the backward pass uses these exponentials. The backward pass does not scale the
    exponentials: it scales the rows of `hidden` and of the gradient of `hidden`.
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
        dweight = _transposed_product(exponentials, torch.cat([hidden * scale, scale], 1))
        with torch.autocast(hidden.device.type, enabled=False):  # as in the forward pass
            dhidden = matmul(exponentials, weight.to(exponentials.dtype)).to(hidden.dtype) * scale
        return dhidden, dweight[:, :-1], dweight[:, -1], None, None


class _ExpectedLogit(torch.autograd.Function):
    """Autograd function: the sum over the samples of probability times logit, for each row of h W^T + b.

    The arguments `hidden` (h), `weight` (W) and `bias` (b) are those of `_LogSumExp`, and `terms` and `scale`
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
        dsamples = _transposed_product(terms, torch.cat([hidden * rows, rows], 1))
        return means[:, :-1] * gradient[:, None], dsamples[:, :-1], dsamples[:, -1], None, None


def _transposed_product(terms: Tensor, rows: Tensor) -> Tensor:
    """Compute terms^T rows in the data type of `terms`, and return it in the data type of `rows`."""
    with torch.autocast(rows.device.type, enabled=False):
        if terms.dtype == torch.float32:
            return weight_gradient(terms, rows)
        # Lower precision is enough here, and torch uses the processor's matrix instructions.
        return (terms.t() @ rows.to(terms.dtype)).to(rows.dtype)


class Negatives:
    """Negative samples for a sampled softmax: S distinct words of the vocabulary, drawn log-uniformly.

    The probability to draw the word with vocabulary index k is P(k) = log((k + 2) / (k + 1)) / log(V + 1).
    Words are drawn until S different words are found, as in TensorFlow's
    `log_uniform_candidate_sampler(unique=True)`. After n draws, the expected count of word k among the
    samples is 1 - (1 - P(k))^n.

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
        """Find the negative samples that are the same word as a target.

        Returns:
            For each match, the index in `targets` and the index of the sample, (matches, 2).
        """
        on_cpu = targets.cpu().contiguous()
        positions = torch.searchsorted(self._sorted, on_cpu).clamp_(max=len(self.rows) - 1)
        hits = torch.nonzero(self._sorted[positions] == on_cpu)[:, 0]
        return torch.stack([hits, self._order[positions[hits]]], 1).to(targets.device)

    def log_count(self, rows: Tensor) -> Tensor:
        """Return the logarithm of the expected count of each word among the samples, float32.

        Args:
            rows: vocabulary indices of the words, in any shape.
        """
        p = torch.log1p(1 / (rows.double() + 1)) / math.log(self._words + 1)
        return (-torch.expm1(self.tries * torch.log1p(-p))).log().float()


def _draw(words: int, number: int, random: np.random.Generator) -> tuple[np.ndarray, int]:
    """Draw words from a vocabulary of `words` words until `number` different words are found. Return the
    vocabulary indices of these words, (number,), and how many draws this took, including repeated words."""
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

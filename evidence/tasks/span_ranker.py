"""The span ranker of Lee et al. (2017) with the coarse pruning of Lee et al. (2018)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from tasks.networks import BiLSTM

_FEATURE = 20
_DISTANCES = (1, 2, 3, 4, 5, 8, 16, 32, 64)


class RankedSpans(NamedTuple):
    """The k kept spans of a document, from left to right, and for each up to a antecedents."""

    starts: Tensor
    """First token of each span, (k,)."""
    ends: Tensor
    """End of each span, exclusive, (k,)."""
    antecedents: Tensor
    """Indices of the antecedents, (k, a). If a span has fewer, the scores of the others are -inf."""
    scores: Tensor
    """Scores, (k, 1 + a). The first is 0, the score of no antecedent."""


class SpanRanker(nn.Module):
    """Network that scores all spans as mentions, keeps the best, and scores pairs of them.

    Args:
        width: width of the input and of the hidden layers.
        max_span_width: longest span in tokens.
        spans_per_word: number of kept spans per word.
        antecedents: number of antecedents of each span after the coarse pruning.
        dropout: dropout rate on the input of each layer.
    """

    def __init__(
        self,
        width: int,
        max_span_width: int,
        spans_per_word: float,
        antecedents: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.max_span_width = max_span_width
        self.spans_per_word = spans_per_word
        self.antecedents = antecedents
        self.dropout = nn.Dropout(dropout)
        self.read = BiLSTM(width, width)
        self.headness = nn.Linear(width, 1)
        self.span_width = nn.Embedding(max_span_width, _FEATURE)
        span = 3 * width + _FEATURE
        self.mention = scorer(span, width, dropout)
        self.coarse = nn.Linear(span, span, bias=False)
        # One layer with the input [span ; antecedent ; product ; distance], in parts. So a part that depends only on
        # the span, or only on the antecedent, is computed once for all pairs.
        self.of_span = nn.Linear(span, width)
        self.of_antecedent = nn.Linear(span, width, bias=False)
        self.of_product = nn.Linear(span, width, bias=False)
        self.of_distance = nn.Embedding(len(_DISTANCES) + 1, width)
        self.pair = nn.Sequential(nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 1))

    def forward(self, documents: list[list[Tensor]]) -> list[RankedSpans]:
        """Compute the ranking of each document independently.

        Args:
            documents: the sentences of each document, (n_tokens, width). No sentence is empty.
        """
        sentences = [sentence for document in documents for sentence in document]
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        x = self.dropout(pad_sequence(sentences, batch_first=True))
        # The sum is a residual connection around the LSTM, instead of the paper's highway connections.
        read = iter((x + self.read(x, lengths)).unbind())
        return [
            self._rank([next(read)[: len(sentence)] for sentence in document])
            for document in documents
        ]

    def _rank(self, sentences: list[Tensor]) -> RankedSpans:
        x = self.dropout(torch.cat(sentences))
        starts, widths = candidates([len(each) for each in sentences], self.max_span_width)
        ends = starts + widths + 1
        head = self._heads(x)[starts, widths]
        spans = torch.cat([x[starts], x[ends - 1], head, self.span_width(widths)], dim=1)
        mention = self.mention(spans)[:, 0]
        count = min(max(1, round(self.spans_per_word * len(x))), len(spans))
        kept = mention.topk(count).indices.sort().values
        antecedents, scores = self._antecedents(spans[kept], mention[kept])
        return RankedSpans(starts[kept], ends[kept], antecedents, scores)

    def _heads(self, x: Tensor) -> Tensor:
        """Return (n_tokens, max_span_width, width), the mean of the tokens of each span, weighted by their headness.
        Index w of the second axis is for spans of w + 1 tokens."""
        beyond = self.max_span_width - 1
        windows = pad(x, (0, 0, 0, beyond)).unfold(0, self.max_span_width, 1)
        headness = pad(self.headness(x)[:, 0], (0, beyond)).unfold(0, self.max_span_width, 1)
        inside = torch.ones(self.max_span_width, self.max_span_width).tril().bool()
        weights = headness[:, None].masked_fill(~inside, -torch.inf).softmax(dim=2)
        return weights @ windows.transpose(1, 2)

    def _antecedents(self, spans: Tensor, mention: Tensor) -> tuple[Tensor, Tensor]:
        """Return the best antecedents of each span, (k, a), and the scores of no antecedent and of each, (k, 1 + a)."""
        rank = torch.arange(len(spans))
        # Divided, because a sum over so many numbers would at first be much larger than the scores of mentions.
        similarity = self.coarse(self.dropout(spans)) @ spans.T / spans.shape[1] ** 0.5
        coarse = similarity + mention[:, None] + mention
        coarse = coarse.masked_fill(rank >= rank[:, None], -torch.inf)
        rough, antecedents = coarse.topk(min(self.antecedents, len(spans)), dim=1)
        far = torch.bucketize(rank[:, None] - antecedents, torch.tensor(_DISTANCES), right=True)
        fine = self.pair(
            self.of_span(spans)[:, None]
            + self.of_antecedent(spans)[antecedents]
            + self.of_product(spans[:, None] * spans[antecedents])
            + self.of_distance(far)
        )[:, :, 0]
        return antecedents, pad(rough + fine, (1, 0))


def scorer(nI: int, width: int, dropout: float) -> nn.Sequential:
    """Return a network with one hidden layer: (n, nI) -> (n, 1)."""
    return nn.Sequential(nn.Linear(nI, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 1))


def candidates(lengths: list[int], max_width: int) -> tuple[Tensor, Tensor]:
    """Return all spans of up to `max_width` tokens inside a sentence.

    Args:
        lengths: lengths of the sentences.

    Returns:
        The first token of each span, ascending; and the number of tokens after it, ascending for each first token.
    """
    ends = torch.tensor(lengths).cumsum(0).repeat_interleave(torch.tensor(lengths))
    last = torch.arange(len(ends))[:, None] + torch.arange(max_width)
    starts, widths = (last < ends[:, None]).nonzero(as_tuple=True)
    return starts, widths

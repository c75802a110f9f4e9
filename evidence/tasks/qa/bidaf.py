"""Bidirectional attention flow (BiDAF) of Seo et al. (2017) without its embeddings."""

import torch
from torch import Tensor, nn

from ..attention import attend, mask
from ..bilstm import BiLSTM


class Bidaf(nn.Module):
    """Network that encodes both texts, computes attention in both directions, and scores both ends of the answer.

    Args:
        width: width of the input and of the LSTMs (both directions together).
        dropout: dropout rate on the input of each layer.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.encode = BiLSTM(width, width)
        self.of_context = nn.Linear(width, 1)
        self.of_question = nn.Linear(width, 1, bias=False)
        self.of_both = nn.Parameter(torch.ones(width) / width**0.5)
        self.merge = nn.Sequential(nn.Linear(4 * width, width), nn.ReLU())
        self.read = BiLSTM(width, width)
        self.read_end = BiLSTM(width, width)
        self.start = nn.Linear(2 * width, 1)
        self.end = nn.Linear(2 * width, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, question: Tensor, question_lengths: Tensor, context: Tensor, context_lengths: Tensor
    ) -> Tensor:
        """Compute the scores of each token of the context as the first and as the last token of the answer.

        Args:
            question, context: (batch, longest, width), padded.
            question_lengths, context_lengths: (batch,), each at least 1.

        Returns:
            (batch, longest context, 2) logits. In the padding they have no meaning.
        """
        q = self.encode(self.dropout(question), question_lengths)
        c = self.encode(self.dropout(context), context_lengths)
        merged = self._attend(c, q, mask(context_lengths), mask(question_lengths))
        m = self.read(self.dropout(merged), context_lengths)
        m_end = self.read_end(self.dropout(m), context_lengths)
        start = self.start(self.dropout(torch.cat([merged, m], dim=2)))
        end = self.end(self.dropout(torch.cat([merged, m_end], dim=2)))
        return torch.cat([start, end], dim=2)

    def _attend(self, c: Tensor, q: Tensor, context_mask: Tensor, question_mask: Tensor) -> Tensor:
        """Return the context with attention to the question, (batch, longest context, width)."""
        similarity = self.of_context(c) + self.of_question(q).transpose(1, 2)
        similarity = similarity + (c * self.of_both) @ q.transpose(1, 2)
        asked = attend(similarity, q, question_mask)
        # The mean of the context, weighted by the similarity of its tokens to their most similar word of the question.
        best = similarity.masked_fill(~question_mask[:, None], -torch.inf).amax(dim=2)
        relevant = attend(best[:, None], c, context_mask)
        return self.merge(self.dropout(torch.cat([c, asked, c * asked, c * relevant], dim=2)))

"""The enhanced sequential inference model (ESIM) of Chen et al. (2017) without trees: two sentences -> features."""

import torch
from torch import Tensor, nn

from ..attention import attend, mask
from ..bilstm import BiLSTM


class Esim(nn.Module):
    """Network that encodes two sentences, aligns each to the other by attention, compares and pools them.

    Args:
        width: width of the input and of both LSTMs (both directions together); the output has four times this width.
        dropout: dropout rate on the input of each layer.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.encode = BiLSTM(width, width)
        self.compare = nn.Sequential(nn.Linear(4 * width, width), nn.ReLU())
        self.compose = BiLSTM(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        premise: Tensor,
        premise_lengths: Tensor,
        hypothesis: Tensor,
        hypothesis_lengths: Tensor,
    ) -> Tensor:
        """Compute the features of pairs.

        Args:
            premise, hypothesis: (batch, longest, width), padded.
            premise_lengths, hypothesis_lengths: (batch,), each at least 1.

        Returns:
            (batch, 4 * width), the mean and the maximum of the premise, then of the hypothesis.
        """
        # The lengths stay on the CPU, because packing requires this.
        premise_mask = mask(premise_lengths).to(premise.device)
        hypothesis_mask = mask(hypothesis_lengths).to(premise.device)
        a = self.encode(self.dropout(premise), premise_lengths)
        b = self.encode(self.dropout(hypothesis), hypothesis_lengths)
        similarity = a @ b.transpose(1, 2)
        aligned_a = attend(similarity, b, hypothesis_mask)
        aligned_b = attend(similarity.transpose(1, 2), a, premise_mask)
        pooled = [
            pool(self.compose(self.dropout(self._compared(h, aligned)), lengths), present)
            for h, aligned, lengths, present in (
                (a, aligned_a, premise_lengths, premise_mask),
                (b, aligned_b, hypothesis_lengths, hypothesis_mask),
            )
        ]
        return torch.cat(pooled, dim=1)

    def _compared(self, h: Tensor, aligned: Tensor) -> Tensor:
        return self.compare(self.dropout(torch.cat([h, aligned, h - aligned, h * aligned], dim=2)))


def pool(x: Tensor, present: Tensor) -> Tensor:
    """Return the mean and the maximum over positions with a token: (batch, n, width) -> (batch, 2 * width)."""
    kept = present[:, :, None]
    mean = x.masked_fill(~kept, 0).sum(dim=1) / kept.sum(dim=1)
    return torch.cat([mean, x.masked_fill(~kept, -torch.inf).amax(dim=1)], dim=1)

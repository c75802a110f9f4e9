"""The biLM as a textbook writes it, to measure `spacy_elmo.bilm` against: plain torch, padded batches, autograd.

Every token of a batch goes through the character CNN at all 50 positions; each direction is a loop over time steps
with both matrix products inside. It reads the parameters of a `BiLM`, and gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.words.char_ids import BOS, EOS, char_ids


class Textbook:
    """The slow twin of a character biLM. Sentences are B lists of words; T is the length of the longest and its two
    boundaries."""

    def __init__(self, bilm: BiLM) -> None:
        self.bilm = bilm

    def layers(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        """(L+1, n, 2P) for each sentence of n words."""
        tokens, outputs = self._run(sentences)
        stacked = torch.stack([torch.cat([tokens, tokens], 2), *outputs])
        return [stacked[:, b, 1 : len(words) + 1] for b, words in enumerate(sentences)]

    def predictions(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """(M, P) for each direction: the outputs of the top layer at the places from which a next word is predicted,
        sentence after sentence. Forward: all but `</S>`; backward: all but `<S>`."""
        _, outputs = self._run(sentences)
        forward, backward = outputs[-1].chunk(2, 2)
        lengths = [len(words) + 2 for words in sentences]
        return (
            torch.cat([forward[b, : n - 1] for b, n in enumerate(lengths)]),
            torch.cat([backward[b, 1:n] for b, n in enumerate(lengths)]),
        )

    def parameters(self) -> list[nn.Parameter]:
        """Those of its twin."""
        return list(self.bilm.parameters())

    def _run(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, list[Tensor]]:
        """Token vectors (B, T, P) and each LSTM layer's output (B, T, 2P)."""
        sequences = [[BOS, *words, EOS] for words in sentences]
        lengths = torch.tensor([len(words) for words in sequences])
        longest = max(map(len, sequences))
        size = self.bilm.config.max_characters
        ids = np.zeros((len(sequences), longest, size), dtype=np.int64)
        for b, words in enumerate(sequences):
            ids[b, : len(words)] = char_ids(words, size)
        tokens = self._encode(torch.from_numpy(ids).view(-1, size)).view(*ids.shape[:2], -1)
        # Place t of a sequence read from the right is place length - 1 - t; padding stays where it is.
        steps = torch.arange(longest)
        mirror = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
        directions = []
        for direction in (0, 1):
            x = _reorder(tokens, mirror) if direction else tokens
            outputs = []
            for level in range(self.bilm.config.layers):
                y = self._read(x, level, direction)
                x = x + y if self.bilm.config.skip and level else y
                outputs.append(_reorder(x, mirror) if direction else x)
            directions.append(outputs)
        return tokens, [torch.cat(pair, 2) for pair in zip(*directions, strict=True)]

    def _encode(self, ids: Tensor) -> Tensor:
        """(K, max_characters) -> (K, P)."""
        encoder, config = self.bilm.encoder, self.bilm.config
        characters = F.embedding(ids, encoder.characters).transpose(1, 2)
        activation = torch.relu if config.activation == "relu" else torch.tanh
        pooled = []
        for weight, bias in zip(encoder.filters, encoder.filter_biases, strict=True):
            features = F.conv1d(characters, weight.permute(2, 1, 0), bias)
            pooled.append(activation(features.max(2).values))
        x = torch.cat(pooled, 1)
        for highway in encoder.highways:
            carry = torch.sigmoid(x @ highway.carry.weight + highway.carry.bias)
            new = torch.relu(x @ highway.transform.weight + highway.transform.bias)
            x = carry * new + (1 - carry) * x
        if encoder.projection is not None:
            x = x @ encoder.projection.weight + encoder.projection.bias
        return x

    def _read(self, x: Tensor, level: int, direction: int) -> Tensor:
        """(B, T, P) -> (B, T, P)."""
        layer, config = self.bilm.lstm[level], self.bilm.config
        projection = None if layer.projection is None else layer.projection[direction]
        h = x.new_zeros(len(x), config.projection)
        c = x.new_zeros(len(x), config.dim)
        outputs = []
        for xt in x.unbind(1):
            z = xt @ layer.input[direction] + h @ layer.recurrent[direction] + layer.bias[direction]
            i, j, f, o = z.chunk(4, 1)
            c = torch.sigmoid(f + config.forget_bias) * c + torch.sigmoid(i) * torch.tanh(j)
            if config.cell_clip is not None:
                c = c.clamp(-config.cell_clip, config.cell_clip)
            h = torch.sigmoid(o) * torch.tanh(c)
            if projection is not None:
                h = h @ projection
                if config.proj_clip is not None:
                    h = h.clamp(-config.proj_clip, config.proj_clip)
            outputs.append(h)
        return torch.stack(outputs, 1)


def _reorder(x: Tensor, places: Tensor) -> Tensor:
    return x.gather(1, places[:, :, None].expand(-1, -1, x.shape[2]))

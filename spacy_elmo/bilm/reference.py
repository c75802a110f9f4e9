"""The biLM of Peters et al. (2018) in its simplest form. Read this file first, then the fast `model.py`.

For position k of a sentence of words t_1 .. t_N, with t_0 = `<S>` and t_N+1 = `</S>`, and LSTM layer j of L:

    x_k = projection(highways(max over positions(conv(characters of t_k))))     section 3.4; Kim et al. 2016
    →h_k,0 = ←h_k,0 = x_k
    →y_k,j = LSTM_j(→h_k,j-1; →y_k-1,j)     ←y_k,j = LSTM_j(←h_k,j-1; ←y_k+1,j)     section 3.1
    h_k,1 = y_k,1;   h_k,j = y_k,j + h_k,j-1     the residual connection, in each direction; section 3.4
    R_k = [x_k ; x_k], [→h_k,1 ; ←h_k,1], .., [→h_k,L ; ←h_k,L]     the L + 1 layers of a word; section 3.2
    log p(t_k | t_0 .. t_k-1) = log softmax(W →h_k-1,L + b)[t_k]     section 3.1, and likewise backward; see `head.py`

The maximum is over the positions of the characters. W and b are the weights of the softmax.

The code uses standard torch operators: padded batches, a character CNN over all positions of every token, a
loop over time steps, and autograd. A test compares the results with `model.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from .config import BiLMConfig
from .spelling import BOS, EOS
from .token_encoder import BYTE_PADDING, char_ids


class ReferenceBiLM:
    """The slow equivalent of `BiLM`, for models that read words as bytes.

    Args:
        config: the hyperparameters.
        parameters: tensors by their names in a weights file: `Weights.tensors`, or
            `dict(bilm.named_parameters())`.
    """

    def __init__(self, config: BiLMConfig, parameters: Mapping[str, Tensor]) -> None:
        if config.n_words or config.n_symbols:
            raise ValueError(
                f"n_words = {config.n_words}, n_symbols = {config.n_symbols}: ReferenceBiLM implements only bytes as"
                " characters, for which both are 0. Use BiLM"
            )
        self.config = config
        self.parameters = parameters

    def layers(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        """Return the biLM layers of each sentence of n words, (layers + 1, n, 2 * projection)."""
        tokens, outputs = self._forward(sentences)
        stacked = torch.stack([torch.cat([tokens, tokens], 2), *outputs])
        return [stacked[:, b, 1 : len(words) + 1] for b, words in enumerate(sentences)]

    def contexts(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Return the outputs of the top layer from which each direction predicts words, (M, projection) each.

        For a sentence of n words, these are n + 1 outputs: at all positions except `</S>` (forward) or `<S>`
        (backward). M is the sum of n + 1 over all sentences.
        """
        forward, backward = self._forward(sentences)[1][-1].chunk(2, 2)
        lengths = [len(words) + 2 for words in sentences]
        return (
            torch.cat([forward[b, : n - 1] for b, n in enumerate(lengths)]),
            torch.cat([backward[b, 1:n] for b, n in enumerate(lengths)]),
        )

    def _forward(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, list[Tensor]]:
        """Return the token vectors, (B, T, P), and the output of each LSTM layer, (B, T, 2P).

        B: sentences, padded to T positions; P: width of the outputs of one direction.
        """
        sequences = [[BOS, *words, EOS] for words in sentences]
        lengths = torch.tensor([len(words) for words in sequences])
        longest, size = int(lengths.max()), self.config.max_characters
        ids = np.full((len(sequences), longest, size), BYTE_PADDING, dtype=np.int64)
        for b, words in enumerate(sequences):
            ids[b, : len(words)] = char_ids(self.config.spelling(words), size)
        tokens = self._encode(torch.from_numpy(ids).flatten(0, 1)).unflatten(0, ids.shape[:2])
        # A sequence is reversed within its true length: step t becomes length - 1 - t, and padding stays at the end.
        steps = torch.arange(longest)
        mirror = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
        forward = self._stack(tokens, direction=0)
        backward = [_reorder(y, mirror) for y in self._stack(_reorder(tokens, mirror), direction=1)]
        return tokens, [torch.cat(pair, 2) for pair in zip(forward, backward, strict=True)]

    def _encode(self, ids: Tensor) -> Tensor:
        """Compute the vectors of K words from their character ids: (K, max_characters) -> (K, projection)."""
        p, config = self.parameters, self.config
        characters = p["encoder.characters"][ids].transpose(1, 2)
        activation = torch.relu if config.activation == "relu" else torch.tanh
        pooled = []
        for n in range(len(config.filters)):
            weight = p[f"encoder.filters.{n}"].permute(2, 1, 0)  # ours is (width, input, output)
            features = F.conv1d(characters, weight, p[f"encoder.filter_biases.{n}"])
            pooled.append(activation(features.max(2).values))
        x = torch.cat(pooled, 1)
        for n in range(config.highways):
            # Srivastava et al. 2015: y = g · relu(W_t x + b_t) + (1 - g) · x with g = σ(W_g x + b_g).
            gate = torch.sigmoid(self._dense(f"encoder.highways.{n}.carry", x))
            transformed = torch.relu(self._dense(f"encoder.highways.{n}.transform", x))
            x = gate * transformed + (1 - gate) * x
        return self._dense("encoder.projection", x) if "encoder.projection.weight" in p else x

    def _dense(self, name: str, x: Tensor) -> Tensor:
        return x @ self.parameters[f"{name}.weight"] + self.parameters[f"{name}.bias"]

    def _stack(self, x: Tensor, direction: int) -> list[Tensor]:
        """Run the LSTM layers of one direction from left to right. Return the output of each layer.

        The input `x` and each output are (B, T, P), for B padded sequences of T steps, and width P.
        """
        outputs = []
        for level in range(self.config.layers):
            y = self._lstm(x, level, direction)
            x = x + y if self.config.skip and level else y
            outputs.append(x)
        return outputs

    def _lstm(self, x: Tensor, level: int, direction: int) -> Tensor:
        """Run one direction of one LSTM layer (Sak et al. 2014; TensorFlow's `LSTMCell`).

        The input `x` and the output are (B, T, P), for B padded sequences of T steps, and width P.
        """
        names = ("input", "recurrent", "bias", "projection")
        stored = (self.parameters.get(f"lstm.{level}.{name}") for name in names)
        w_x, w_h, b, w_p = (None if pair is None else pair[direction] for pair in stored)
        assert w_x is not None and w_h is not None and b is not None
        h = x.new_zeros(len(x), self.config.projection)
        c = x.new_zeros(len(x), self.config.dim)
        outputs = []
        for x_t in x.unbind(1):
            i, j, f, o = (x_t @ w_x + h @ w_h + b).chunk(4, 1)  # j: the candidate
            c = torch.sigmoid(f + self.config.forget_bias) * c + torch.sigmoid(i) * torch.tanh(j)
            c = _clip(c, self.config.cell_clip)
            h = torch.sigmoid(o) * torch.tanh(c)
            if w_p is not None:
                h = _clip(h @ w_p, self.config.proj_clip)
            outputs.append(h)
        return torch.stack(outputs, 1)


def _clip(x: Tensor, limit: float | None) -> Tensor:
    return x if limit is None else x.clamp(-limit, limit)


def _reorder(x: Tensor, order: Tensor) -> Tensor:
    """Reorder the T steps of each of B sequences: y[b, t] = x[b, order[b, t]], for x (B, T, width)."""
    return x.gather(1, order[:, :, None].expand(-1, -1, x.shape[2]))

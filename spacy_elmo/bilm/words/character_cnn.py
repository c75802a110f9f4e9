"""The character CNN and its highway layers (Kim et al. 2016, as in bilm-tf)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..config import BiLMConfig
from ..kernels import convolution
from ..kernels.highway import highway, highway_gates
from ..kernels.matmul import matmul, matmul_dtype
from ..kernels.native import has_kernels
from .dense import Dense, PrepackedDense

WORDS_PER_BLOCK = 32
"""Number of distinct words for which the convolutions are computed at once on a CPU, if there is no C function."""
_WORDS_PER_BLOCK_ON_GPU = 4096


class Highway(nn.Module):
    """A highway layer (Srivastava et al. 2015; bilm-tf `model.py:high`).

    c = σ(x W_c + b_c); t = relu(x W_t + b_t); y = c t + (1 - c) x. The name *carry* gate for c is from
    bilm-tf. In Srivastava et al., the carry gate scales x, but here c scales the transformed input t.

    If you change the formula, change it in `bilm/reference.py` and `converters/onnx.py` as well.

    *Shape:* (words, width) -> (words, width).
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.carry = Dense(width, width)
        self.transform = Dense(width, width)
        # As in bilm-tf. Before training, most of the input passes unchanged.
        nn.init.constant_(self.carry.bias, -2.0)

    def forward(self, x: Tensor) -> Tensor:
        # In a network for inference, both are prepacked.
        carry: nn.Module = self.carry
        transform: nn.Module = self.transform
        if isinstance(carry, Dense) and isinstance(transform, Dense):
            return highway(x, carry.weight, carry.bias, transform.weight, transform.bias)
        assert isinstance(carry, PrepackedDense) and isinstance(transform, PrepackedDense)
        if carry.panels is not None and transform.panels is not None:
            gates = carry.panels, carry.bias, transform.panels, transform.bias
            return highway_gates(x, *gates)[1]
        return x + carry(x).sigmoid() * (transform(x).relu() - x)


class CharacterCNN(nn.Module):
    """A character CNN: character vectors, convolutions, the maximum over the positions in a word, an
    activation, and highway layers.

    Args:
        config: the hyperparameters.
        characters: number of character ids.
        padding: id of the padding character, which fills the positions after a word.
    """

    def __init__(self, config: BiLMConfig, *, characters: int, padding: int) -> None:
        super().__init__()
        self.config = config
        self.padding = padding
        self.characters = nn.Parameter(torch.empty(characters, config.char_dim))
        self.filters = nn.ParameterList(
            torch.empty(width, config.char_dim, number) for width, number in config.filters
        )
        self.filter_biases = nn.ParameterList(torch.empty(number) for _, number in config.filters)
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.highways))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the character vectors and the convolutions as bilm-tf's `training.py` does.

        With the activation relu, filters are drawn from a uniform distribution. With tanh, filters are drawn
        from a normal distribution with variance 1 / (filter width * size of a character vector).
        """
        nn.init.uniform_(self.characters, -1.0, 1.0)
        for weight in self.filters:
            if self.config.activation == "relu":
                nn.init.uniform_(weight, -0.05, 0.05)
            else:
                nn.init.normal_(weight, std=(weight.shape[0] * weight.shape[1]) ** -0.5)
        for bias in self.filter_biases:
            nn.init.zeros_(bias)

    def forward(self, ids: Tensor) -> Tensor:
        """Compute the features of each word from its character ids: (words, max_characters) integers ->
        (words, n_filters)."""
        if not len(ids):
            return self.characters.new_zeros((0, self.config.n_filters))
        x = self._convolve(ids)
        for layer in self.highways:
            x = layer(x)
        return x

    def _convolve(self, ids: Tensor) -> Tensor:
        # Padding takes part in the maximum, so a word must not be cropped to its length. But behind its length plus the
        # widest filter, all windows contain only padding, so cropping there changes no result.
        lengths = (ids != self.padding).sum(1)
        lengths += max(width for width, _ in self.config.filters)
        lengths.clamp_(max=self.config.max_characters)
        parameters = self.characters, [*self.filters], [*self.filter_biases]
        compute_dtype = matmul_dtype(self.characters)
        if has_kernels(compute_dtype, self.characters):
            activation = self.config.activation
            return convolution.maxima(ids.int(), lengths, *parameters, activation, compute_dtype)
        x = self._convolve_blocks(ids, lengths)
        return x.relu() if self.config.activation == "relu" else x.tanh()

    def _convolve_blocks(self, ids: Tensor, lengths: Tensor) -> Tensor:
        # The words of a block have similar lengths, so one long URL does not add positions to a thousand short words.
        # On a GPU, few large blocks are faster.
        order = lengths.argsort()
        size = WORDS_PER_BLOCK if ids.is_cpu else _WORDS_PER_BLOCK_ON_GPU
        blocks = [
            self._convolve_block(ids[rows, : int(lengths[rows[-1]])]) for rows in order.split(size)
        ]
        return torch.cat(blocks).index_select(0, order.argsort())

    def _convolve_block(self, ids: Tensor) -> Tensor:
        count, columns = ids.shape
        dim = self.config.char_dim
        x = nn.functional.embedding(ids.int(), self.characters)
        pooled = []
        for weight, bias in zip(self.filters, self.filter_biases, strict=True):
            width, _, number = weight.shape
            positions = columns - width + 1
            windows = torch.cat([x[:, shift : shift + positions] for shift in range(width)], 2)
            features = matmul(windows.view(-1, width * dim), weight.view(width * dim, number))
            # The bias does not change which position has the maximum, so it is added only once, after the maximum.
            pooled.append(features.view(count, -1, number).amax(1) + bias)
        return torch.cat(pooled, 1)

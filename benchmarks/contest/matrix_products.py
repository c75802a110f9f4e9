"""The matrix products of a biLM without its other operations. Their time is a lower bound of the biLM's time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from spacy_elmo.bilm.kernels.plain_lstm import blocks
from spacy_elmo.bilm.kernels.prepacked import MatmulWeight, prepack
from spacy_elmo.bilm.matmul_precision import Precision
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.packing import Packing
from spacy_elmo.bilm.words.char_ids import PADDING
from spacy_elmo.bilm.words.character_cnn import WORDS_PER_BLOCK
from spacy_elmo.bilm.words.dense import Dense

Product = tuple[int, Tensor]
"""Number of rows of the left matrix, and the right matrix (k, m)."""


class MatrixProducts:
    """The matrix products that a character biLM computes for some sentences, without lookups, sums or activations.

    They have the order of the biLM, its matrices and its kernels, but their rows are already in the processor's cache.
    The products of a word's vector are computed only for the first sentence with this word, as with the token cache.

    Args:
        bilm: the network whose matrices are multiplied.
        precision: see `BiLM.prepare_for_inference`. In "int8" a product includes the quantization of its rows.
    """

    def __init__(self, bilm: BiLM, precision: Precision) -> None:
        self.bilm = bilm
        self._cached: set[str] = set()
        self._matrices: dict[int, MatmulWeight] = {}
        for layer in bilm.lstm:
            for pair in (layer.input, layer.recurrent, layer.projection):
                for matrix in () if pair is None else pair.detach():
                    self._matrices[matrix.data_ptr()] = prepack(matrix, precision)
        for module in bilm.encoder.modules():
            if isinstance(module, Dense):
                matrix = module.weight.detach()
                low = precision == "bfloat16"
                self._matrices[matrix.data_ptr()] = prepack(matrix, precision if low else "float32")

    def clear_cache(self) -> None:
        """Forget all words, so that the products of their vectors are computed again."""
        self._cached.clear()

    def operands(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Tensor, MatmulWeight]]:
        """Return both sides of each product. Left sides of the same width share their memory."""
        products = list(self.products(sentences))
        most_rows: dict[int, int] = {}
        for rows, matrix in products:
            most_rows[len(matrix)] = max(rows, most_rows.get(len(matrix), 0))
        left = {k: torch.randn(rows, k) for k, rows in most_rows.items()}
        operands = []
        for rows, matrix in products:
            right = self._matrices.get(matrix.data_ptr()) or prepack(matrix, "float32")
            operands.append((left[len(matrix)][:rows].to(right.dtype), right))
        return operands

    def products(self, sentences: Sequence[Sequence[str]]) -> Iterator[Product]:
        """Yield all products for a batch of sentences, in the order of the biLM."""
        words = {word for sentence in sentences for word in sentence}
        types = words.union(self.bilm.encoder.boundaries) - self._cached
        self._cached |= types
        if types:
            yield from self._encoder_products(sorted(types))
        batch_sizes = Packing.of([len(sentence) for sentence in sentences]).batch_sizes
        for layer in self.bilm.lstm:
            for direction in (0, 1):
                for steps, part in blocks(batch_sizes):
                    yield part.stop - part.start, layer.input[direction].detach()
                    for n in batch_sizes[steps]:
                        yield n, layer.recurrent[direction].detach()
                        if layer.projection is not None:
                            yield n, layer.projection[direction].detach()

    def _encoder_products(self, types: list[str]) -> Iterator[Product]:
        """Yield the products of the token encoder, which processes words in blocks of similar length."""
        config, encoder = self.bilm.config, self.bilm.encoder
        lengths = (self.bilm.token_ids(types) != PADDING).sum(1).sort().values
        widest = max(width for width, _ in config.filters)
        for block in lengths.split(WORDS_PER_BLOCK):
            columns = min(config.max_characters, int(block[-1]) + widest)
            for weight in encoder.filters:
                width, dim, number = weight.shape
                rows = len(block) * (columns - width + 1)
                yield rows, weight.detach().view(width * dim, number)
        for module in encoder.modules():
            if isinstance(module, Dense):
                yield len(types), module.weight.detach()


@torch.no_grad()
def multiply(operands: list[tuple[Tensor, MatmulWeight]]) -> None:
    """Compute the products, and discard the results."""
    for left, right in operands:
        right(left)

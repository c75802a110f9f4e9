"""The matrix products of a biLM and nothing else: how long its arithmetic takes by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from spacy_elmo.bilm.kernels.prepacked import MatmulWeight, PlainWeight, ready
from spacy_elmo.bilm.kernels.recurrence import blocks
from spacy_elmo.bilm.matmul_precision import Precision
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.packing import Packing
from spacy_elmo.bilm.words.char_ids import PADDING
from spacy_elmo.bilm.words.character_cnn import TYPES_PER_BLOCK, Affine

Product = tuple[int, Tensor]
"""Rows of the left matrix, and the right matrix (k, m)."""


class MatrixProducts:
    """Does the products that a character biLM needs for its sentences: in its order, with its matrices and by the same
    library, on rows that lie where the caches have them. Nothing is gathered, added, or put through an activation.
    Those of a word's vector are only done for the first sentence that has it.

    Args:
        bilm: whose matrices they are.
        precision: of the LSTM, "float32" or "bfloat16". In "int8" a product could not be told from the scaling of rows.
    """

    def __init__(self, bilm: BiLM, precision: Precision) -> None:
        self.bilm = bilm
        self._known: set[str] = set()
        self._matrices: dict[int, MatmulWeight] = {}
        for layer in bilm.lstm:
            for pair in (layer.input, layer.recurrent, layer.projection):
                for matrix in () if pair is None else pair.detach():
                    self._matrices[matrix.data_ptr()] = ready(matrix, precision)

    def forget(self) -> None:
        """Let the words known so far be new again."""
        self._known.clear()

    def operands(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Tensor, MatmulWeight]]:
        """Both sides of each product; those with the same inner dimension share their left side's memory."""
        products = list(self.products(sentences))
        most: dict[int, int] = {}
        for rows, matrix in products:
            most[len(matrix)] = max(rows, most.get(len(matrix), 0))
        room = {k: torch.randn(rows, k) for k, rows in most.items()}
        found = []
        for rows, matrix in products:
            plain = PlainWeight(matrix, torch.float32)  # as the token encoder multiplies
            right = self._matrices.get(matrix.data_ptr(), plain)
            found.append((room[len(matrix)][:rows].to(right.dtype), right))
        return found

    def products(self, sentences: Sequence[Sequence[str]]) -> Iterator[Product]:
        """All products for a batch of sentences, in order."""
        words = {word for sentence in sentences for word in sentence}
        types = words.union(self.bilm.encoder.boundaries) - self._known
        self._known |= types
        if types:
            yield from self._of_types(sorted(types))
        rows = Packing.of([len(sentence) for sentence in sentences]).rows
        for layer in self.bilm.lstm:
            for direction in (0, 1):
                for steps, part in blocks(rows):
                    yield part.stop - part.start, layer.input[direction].detach()
                    for n in rows[steps]:
                        yield n, layer.recurrent[direction].detach()
                        if layer.projection is not None:
                            yield n, layer.projection[direction].detach()

    def _of_types(self, types: list[str]) -> Iterator[Product]:
        """Those of the token encoder, which reads words in blocks of like length."""
        config, encoder = self.bilm.config, self.bilm.encoder
        lengths = (self.bilm.token_ids(types) != PADDING).sum(1).sort().values
        widest = max(width for width, _ in config.filters)
        for block in lengths.split(TYPES_PER_BLOCK):
            columns = min(config.max_characters, int(block[-1]) + widest)
            for weight in encoder.filters:
                width, dim, number = weight.shape
                rows = len(block) * (columns - width + 1)
                yield rows, weight.detach().view(width * dim, number)
        for affine in encoder.modules():
            if isinstance(affine, Affine):
                yield len(types), affine.weight.detach()


@torch.no_grad()
def multiply(operands: list[tuple[Tensor, MatmulWeight]]) -> None:
    """Do the products; what they give is thrown away."""
    for left, right in operands:
        right(left)

"""The teacher of a run: a larger biLM whose predictions the run imitates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from ..bilm.config import Precision
from ..bilm.kernels import native
from ..bilm.kernels.matmul import matmul_dtype
from ..bilm.likelihood import build_language_model
from ..bilm.weights import Weights
from .corpus import Batch
from .sampled_softmax import Negatives, SampledProbabilities, sampled_probabilities


class Teacher:
    """A trained biLM, the teacher, from which a smaller biLM learns (knowledge distillation, Hinton et al. 2015,
    https://arxiv.org/abs/1503.02531).

    Args:
        weights: the weights of the teacher with its softmax.
        types: the distinct words of the corpus. A batch contains indices in this list.
    """

    def __init__(self, weights: Weights, types: Sequence[str], device: torch.device) -> None:
        bilm, head = build_language_model(weights)
        self._bilm, self._head, self._types = bilm.to(device), head.to(device), types
        self._is_prepared = False
        self.digest = weights.digest()
        """Hash of everything that determines the predictions of the teacher."""

    @torch.no_grad()
    def __call__(
        self, batch: Batch, classes: Tensor, negatives: Sequence[Negatives]
    ) -> list[SampledProbabilities]:
        """Return the probabilities that each direction of the teacher gives to the targets and the negative samples.

        Args:
            classes: (2, M) target class of each output of the biLM, for each direction.
        """
        # Without kernels, the bits of a cached vector depend on the batch in which it was computed, and the cache of a
        # resumed run is empty.
        if classes.is_cpu and native.processor() is not None and not self._is_prepared:
            precision = str(matmul_dtype(self._head.weight)).removeprefix("torch.")
            self._bilm = self._bilm.prepare_for_inference(cast("Precision", precision))
            self._is_prepared = True
        words = [self._types[row] for row in batch.types.tolist()]
        # The network that is prepared for a CPU has its own data type.
        with torch.autocast("cpu", enabled=False):
            types = self._bilm.encode_words(words)
            outputs = self._bilm.forward_packed(types, batch.type_of_word, batch.lengths).outputs
        directions = zip(torch.from_dlpack(outputs[-1]), classes, negatives, strict=True)
        return [sampled_probabilities(self._head, *direction) for direction in directions]

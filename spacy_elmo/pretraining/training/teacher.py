"""A larger biLM whose predictions a run imitates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from ...bilm.head import Negatives, SampledProbabilities
from ...bilm.kernels.matmul import matmul_dtype
from ...bilm.likelihood import build_language_model
from ...bilm.matmul_precision import Precision
from ...bilm.model import BiLM
from ...bilm.weights import Weights
from ..corpus.batches import TrainBatch


class Teacher:
    """A trained biLM, the teacher, from which a smaller biLM learns (knowledge distillation, Hinton et al. 2015,
    https://arxiv.org/abs/1503.02531).

    Args:
        weights: the weights of the teacher with its softmax.
        types: the distinct words of the corpus. A batch contains indices in this list.
    """

    def __init__(self, weights: Weights, types: Sequence[str], device: torch.device) -> None:
        bilm, head = build_language_model(weights)
        self._bilm, self._head = bilm.to(device), head.to(device)
        self._token_ids = bilm.token_ids(types)
        self._ready: tuple[torch.dtype, BiLM] | None = None

    @torch.no_grad()
    def __call__(
        self, batch: TrainBatch, classes: Tensor, negatives: Sequence[Negatives]
    ) -> list[SampledProbabilities]:
        """Return the probabilities that each direction of the teacher gives to the targets and the negative
        samples.

        Args:
            classes: (2, M) target class of each output of the biLM, for each direction.
            negatives: the negative samples of each direction.
        """
        dtype = matmul_dtype(self._head.weight)
        if self._ready is None or self._ready[0] != dtype:
            precision = cast("Precision", str(dtype).removeprefix("torch."))
            self._ready = dtype, self._bilm.prepare_for_inference(precision)
        token_ids = self._token_ids[torch.from_numpy(batch.types)]
        with torch.autocast(classes.device.type, enabled=False):
            outputs = self._ready[1].forward_packed(token_ids, batch.words, batch.lengths).outputs
        directions = zip(outputs[-1], classes, negatives, strict=True)
        return [self._head.sampled_probabilities(*direction) for direction in directions]

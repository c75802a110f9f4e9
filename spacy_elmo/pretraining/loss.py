"""The loss of a training step, and its gradient. A batch can be divided among processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..bilm.head import Head
from ..bilm.kernels.matmul import has_bfloat16
from ..bilm.model import BiLM, PackedOutput
from .config import Training
from .corpus import Batch, Batcher, Sentences
from .distributed import Processes
from .optimizers import clip_gradients
from .sampled_softmax import Negatives, sampled_loss
from .teacher import Teacher


def targets(output: PackedOutput, classes: np.ndarray) -> np.ndarray:
    """Return the target class of each output of the biLM, (2, outputs): first forward, then backward.

    The target is the next word in the direction of the LSTM, or the boundary at the end (`</S>` forward,
    `<S>` backward). `classes` contains the softmax class of each distinct word, then of `<S>` and `</S>`.
    """
    forward, backward = output.packing.positions
    return classes[np.stack([output.sequence[forward + 1], output.sequence[backward - 1]])]


def loss_sum(
    bilm: BiLM,
    head: Head,
    batch: Batch,
    negatives: Sequence[Negatives] | None,
    dropout: float,
    teacher: Teacher | None = None,
) -> Tensor:
    """Return the softmax loss in nats, summed over all targets of both directions. Without a teacher, the loss
    is that of bilm-tf's `training.py`.

    Args:
        negatives: the negative samples of each direction, for the sampled softmax; None: the full softmax,
            which has no teacher.
        teacher: the larger biLM whose predictions the biLM imitates; None: no teacher.
    """
    types = bilm.encode(batch.token_ids)
    output = bilm.forward_packed(types, batch.type_of_word, batch.lengths, dropout=dropout)
    hidden = nn.functional.dropout(output.outputs[-1], dropout, training=dropout > 0)
    classes = torch.from_numpy(targets(output, batch.classes)).to(hidden.device)
    if negatives is None:
        return _full_loss(head, hidden.flatten(0, 1), classes.flatten())
    taught = [None, None] if teacher is None else teacher(batch, classes, negatives)
    directions = zip(hidden, classes, negatives, taught, strict=True)
    return torch.stack([sampled_loss(head, *direction) for direction in directions]).sum()


def _full_loss(head: Head, hidden: Tensor, classes: Tensor) -> Tensor:
    # The backward pass computes the logits again, because keeping all of them would take gigabytes.
    rows = head.rows_per_block
    losses = [
        checkpoint(head.full_loss, *pair, use_reentrant=False, preserve_rng_state=False)
        for pair in zip(hidden.split(rows), classes.split(rows), strict=True)
    ]
    return torch.cat(losses).sum()


class Gradient:
    """Computation of the gradients of a network and its softmax head for one training step.

    Each process computes the gradient of a part of the batch. All parts have the same negative samples. The loss of
    each part is divided by the number of targets of the whole batch, so the sum of the gradients does not depend on the
    number of processes.
    """

    def __init__(
        self,
        bilm: BiLM,
        head: Head,
        batcher: Batcher,
        sentences: Sentences,
        settings: Training,
        processes: Processes,
        teacher: Teacher | None,
    ) -> None:
        self._bilm, self._head, self._batcher, self._teacher = bilm, head, batcher, teacher
        self._sentences, self._settings, self._processes = sentences, settings, processes
        self.dtype: str = settings.precision
        if self.dtype == "auto":
            self.dtype = "bfloat16" if has_bfloat16(bilm.device) else "float32"
        """Data type of the matrix products, "float32" or "bfloat16". A resumed run sets the data type that is
        stored in the checkpoint."""
        self._dense, self._sparse = list(bilm.parameters()), list(head.parameters())
        if settings.negatives is None:
            self._dense, self._sparse = self._dense + self._sparse, []

    def __call__(self, rows: np.ndarray, step: int) -> tuple[float, float]:
        """Store the gradients of a batch in `grad` of the parameters. Return the mean loss per target in nats, and
        the norm of the gradient before clipping.

        Args:
            rows: indices of the sentences of the batch in the corpus.
            step: number of training steps so far. Random numbers depend only on `step` and the seed.
        """
        settings = self._settings
        random = np.random.default_rng([settings.seed, step])
        negatives = self._negatives(random)
        part, parts = self._processes.rank, self._processes.size
        seed = int(random.integers(2**63, size=parts)[part])
        targets = 2 * (self._sentences.count_words(rows) + len(rows))
        use_bfloat16, device = self.dtype == "bfloat16", self._bilm.device.type
        mean = 0.0
        if part < len(rows):
            batch = self._batcher(*self._sentences.take(rows[part::parts]))
            torch.manual_seed(seed)
            with torch.autocast(device, torch.bfloat16, enabled=use_bfloat16):
                total = loss_sum(
                    self._bilm, self._head, batch, negatives, settings.dropout, self._teacher
                )
                loss = total / targets
            loss.backward()
            mean = float(loss.detach())
        self._processes.sum_gradients(self._dense, self._sparse)
        norm = clip_gradients([*self._dense, *self._sparse], settings.grad_clip)
        return self._processes.sum(mean), norm

    def _negatives(self, random: np.random.Generator) -> list[Negatives] | None:
        if self._settings.negatives is None:
            return None
        size = len(self._head.weight)
        return [Negatives(size, min(self._settings.negatives, size), random) for _ in range(2)]

"""The loss of a step, and its gradient: in parts, by several processes, in a number type, with the same bits in every
run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ...bilm.head import Head, Negatives
from ...bilm.kernels.instructions import has_instructions
from ...bilm.model import BiLM, PackedOutput
from ..config import Training
from ..corpus.batches import Batcher, TrainBatch
from ..corpus.prepared import Sentences
from .distributed import Ranks
from .optimization import clip_gradients

_deterministic: Any = torch.utils.deterministic


def targets(output: PackedOutput, classes: np.ndarray) -> np.ndarray:
    """Return (2, M) the class that each direction predicts at each packed row.

    It is that of the next word, or of the closing boundary (`</S>` forward, `<S>` backward).
    """
    forward, backward = output.packing.positions
    return classes[np.stack([output.sequence[forward + 1], output.sequence[backward - 1]])]


def loss_sum(
    bilm: BiLM,
    head: Head,
    batch: TrainBatch,
    negatives: Sequence[Negatives] | None,
    dropout: float,
) -> Tensor:
    """Return the softmax loss in nats (bilm-tf `training.py`), summed over all targets of both directions.

    Args:
        negatives: one draw per direction for the sampled softmax; None: the full softmax.
    """
    output = bilm.forward_packed(batch.token_ids, batch.words, batch.lengths, dropout=dropout)
    hidden = nn.functional.dropout(output.outputs[-1], dropout, training=dropout > 0)
    classes = torch.from_numpy(targets(output, batch.classes)).to(hidden.device)
    if negatives is None:
        return _full_loss(head, hidden.flatten(0, 1), classes.flatten())
    losses = [head.sampled_loss(*pair) for pair in zip(hidden, classes, negatives, strict=True)]
    return torch.stack(losses).sum()


def _full_loss(head: Head, hidden: Tensor, classes: Tensor) -> Tensor:
    # Logits are recomputed in the backward pass: keeping all of them would take gigabytes.
    rows = head.rows_per_block
    losses = [
        checkpoint(head.full_loss, *pair, use_reentrant=False, preserve_rng_state=False)
        for pair in zip(hidden.split(rows), classes.split(rows), strict=True)
    ]
    return torch.cat(losses).sum()


class Gradient:
    """Computation of the gradients of a network and its head for one step.

    A batch is divided into `accumulate_gradient` parts for each process, and all parts have the same negatives. Each
    loss is divided by the number of targets of the whole batch, so the gradients of the parts add up to that of the
    batch, however it is divided.
    """

    def __init__(
        self,
        bilm: BiLM,
        head: Head,
        batcher: Batcher,
        sentences: Sentences,
        settings: Training,
        ranks: Ranks,
    ) -> None:
        self._bilm, self._head, self._batcher = bilm, head, batcher
        self._sentences, self._settings, self._ranks = sentences, settings, ranks
        self.dtype = autocast_dtype(settings.precision, bilm.device)
        """Number type of the matrix products, "float32" or "bfloat16". A resumed run keeps that of its checkpoint."""
        self._dense, self._sparse = list(bilm.parameters()), list(head.parameters())
        if settings.negatives is None:
            self._dense, self._sparse = self._dense + self._sparse, []

    def __call__(self, rows: np.ndarray, step: int) -> tuple[float, float]:
        """Fill the gradients by a forward and a backward pass. Random numbers depend on the seed and `step` alone.

        Args:
            rows: indices of the sentences of the batch.

        Returns:
            The mean loss per target in nats, and the norm of the gradient before clipping; both of the whole batch.
        """
        settings = self._settings
        random = np.random.default_rng([settings.seed, step])
        negatives = self._negatives(random)
        parts = self._ranks.size * settings.accumulate_gradient
        seeds = random.integers(2**63, size=parts)
        targets = 2 * (self._sentences.words(rows) + len(rows))
        use_bfloat16, device = self.dtype == "bfloat16", self._bilm.device.type
        mean = 0.0
        for part in range(self._ranks.rank, min(parts, len(rows)), self._ranks.size):
            batch = self._batcher(*self._sentences.take(rows[part::parts]))
            torch.manual_seed(int(seeds[part]))
            with torch.autocast(device, torch.bfloat16, enabled=use_bfloat16):
                total = loss_sum(self._bilm, self._head, batch, negatives, settings.dropout)
                loss = total / targets
            loss.backward()
            mean += float(loss.detach())
        self._ranks.sum_gradients(self._dense, self._sparse)
        norm = clip_gradients([*self._dense, *self._sparse], settings.grad_clip)
        return self._ranks.sum(mean), norm

    def _negatives(self, random: np.random.Generator) -> list[Negatives] | None:
        """Return one draw per direction, or None for the full softmax."""
        if self._settings.negatives is None:
            return None
        size = len(self._head.weight)
        return [Negatives(size, min(self._settings.negatives, size), random) for _ in range(2)]


def autocast_dtype(setting: str, device: torch.device) -> str:
    """Return `"float32"` or `"bfloat16"`: the setting itself, or the faster type on this machine for `"auto"`.

    The faster one is bfloat16 where there are instructions for it, AVX512_BF16 or AMX on x86, BF16 on ARM, NVIDIA GPUs
    since Ampere, and float32 elsewhere.
    """
    if setting != "auto":
        return setting
    return "bfloat16" if has_instructions("bfloat16", device) else "float32"


@contextlib.contextmanager
def reproducible(device: torch.device) -> Iterator[None]:
    """Make torch add in a fixed order within the block, and restore its settings and random state afterwards, because a
    run may share the process with other work of its caller."""
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    fill = _deterministic.fill_uninitialized_memory
    # Some products have no deterministic algorithm on a GPU, so there it is a warning only.
    torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
    # It would write NaN into every buffer that is about to be overwritten.
    _deterministic.fill_uninitialized_memory = False
    try:
        # Of this device only: otherwise torch would initialize, and warn about, every GPU of the machine.
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        _deterministic.fill_uninitialized_memory = fill

"""The LSTM state at the start of a sentence, for biLMs that were trained with each sentence starting from the
final LSTM state of the previous sentence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class StartState:
    """The LSTM state of both directions at the start of a sentence, before the opening boundary (`<S>`
    forward, `</S>` backward). Every sentence starts with this state."""

    h: Tensor
    """Output h of each LSTM layer and direction, (layers, 2, projection)."""
    c: Tensor
    """Cell state c of each LSTM layer and direction, (layers, 2, cells)."""

    def to(self, dtype: torch.dtype) -> StartState:
        """Return the state, converted to `dtype`."""
        return StartState(self.h.to(dtype), self.c.to(dtype))

    def for_batch(self, sentences: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Repeat the state for a batch of B sentences, as the argument `state` of `BiLM.forward`: h
        (layers, 2, B, projection) and c (layers, 2, B, cells), both float32."""
        h, c = (
            t.to(device, torch.float32)[:, :, None].expand(-1, -1, sentences, -1)
            for t in (self.h, self.c)
        )
        return h, c

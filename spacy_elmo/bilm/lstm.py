"""Parameters and forward pass of one LSTM layer of a biLM, in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from .config import BiLMConfig, Precision
from .kernels.fused_lstm import FusedDirection, FusedLSTM
from .kernels.native import has_kernels
from .kernels.plain_lstm import Clips, PlainDirections, PlainLSTM


class LSTMLayer(nn.Module):
    """One LSTM layer in both directions. Direction 0 runs forward, direction 1 backward.

    The first dimension of each parameter is the direction. Vectors are rows, multiplied by a matrix W from
    the right (x W). The columns for the gates are in TensorFlow's order: input gate, candidate, forget gate,
    output gate. The formulas are in `kernels/plain_lstm.py`.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        dim, width = config.dim, config.projection
        self.forget_bias = config.forget_bias
        self.cell_clip = config.cell_clip
        self.proj_clip = config.proj_clip
        self.input = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.recurrent = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.bias = nn.Parameter(torch.empty(2, 4 * dim))
        has_projection = dim != width or config.square_projections
        self.projection = nn.Parameter(torch.empty(2, dim, width)) if has_projection else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters as bilm-tf does: Glorot's uniform distribution for the matrices (the
        input and recurrent matrices count as one matrix), and 0 for the bias."""
        rows, columns = 2 * self.input.shape[1], self.input.shape[2]
        bound = (6 / (rows + columns)) ** 0.5
        nn.init.uniform_(self.input, -bound, bound)
        nn.init.uniform_(self.recurrent, -bound, bound)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            bound = (6 / sum(self.projection.shape[1:])) ** 0.5
            nn.init.uniform_(self.projection, -bound, bound)

    def forward(
        self, x: Tensor, batch_sizes: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run both directions over B sequences, which are packed without padding (see `Packing`).

        Under `torch.autocast`, only the matrix products have the data type of autocast.

        Args:
            x: (2, M, P) the inputs of each direction: M packed vectors of width P.
            batch_sizes: number of sequences at each time step; the sum is M.
            h, c: (2, B, P) and (2, B, C), the state before the first time step, for C cells. The longest
                sequence comes first. The tensors are not changed.

        Returns:
            The outputs, (2, M, P), and the state h and c after the last time step of each sequence. No
            gradient flows back through the returned state, as in bilm-tf and AllenNLP.
        """
        device = x.device.type
        autocast = torch.is_autocast_enabled(device)
        compute_dtype = torch.get_autocast_dtype(device) if autocast else x.dtype
        tensors = x, h, c, *self.parameters()
        with torch.autocast(device, enabled=False):
            fused = has_kernels(compute_dtype, *tensors)
            if not (torch.is_grad_enabled() and any(t.requires_grad for t in tensors)):
                return InferenceLayer(self, compute_dtype, fused)(x, batch_sizes, h, c)
            settings = batch_sizes, self._clips, compute_dtype
            if not fused:
                return PlainLSTM.apply(x, *self._weights(), h, c, *settings)
            directions = zip(x, self._weights_by_direction(), h, c, strict=True)
            return _stack(
                [FusedLSTM.apply(x_, *w, h_, c_, *settings) for x_, w, h_, c_ in directions]
            )

    @torch.no_grad()
    def prepare_for_inference(self, precision: Precision) -> InferenceLayer:
        """Return a copy of the layer for prediction only, with converted and prepacked matrices. Later changes
        of the parameters may have no effect on the copy."""
        compute_dtype = getattr(torch, precision)
        return InferenceLayer(self, compute_dtype, has_kernels(compute_dtype, *self.parameters()))

    @property
    def _clips(self) -> Clips:
        return Clips(self.cell_clip, self.proj_clip if self.projection is not None else None)

    def _weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Return the input matrices, the recurrent matrices, the biases (with the forget bias added) and the
        projection matrices or None, each for both directions."""
        dim = self.bias.shape[1] // 4
        bias = self.bias.clone()
        bias[:, 2 * dim : 3 * dim] += self.forget_bias
        return self.input, self.recurrent, bias, self.projection

    def _weights_by_direction(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor | None]]:
        """Yield the weights of the forward direction, then those of the backward direction."""
        *weights, projection = self._weights()
        return zip(*weights, (None, None) if projection is None else projection, strict=True)


class InferenceLayer(nn.Module):
    """An LSTM layer for prediction only. It has no parameters, and its outputs have no autograd graph.

    Args:
        layer: the layer of which this one is a copy.
        compute_dtype: data type of the matrix products.
        fused: use the C functions, which must exist for this data type (see `has_kernels`).
    """

    def __init__(self, layer: LSTMLayer, compute_dtype: torch.dtype, fused: bool) -> None:
        super().__init__()
        self._plain: PlainDirections | None = None
        self._fused: list[FusedDirection] = []
        if fused:
            self._fused = [
                FusedDirection(*weights, layer._clips, compute_dtype)
                for weights in layer._weights_by_direction()
            ]
        else:
            self._plain = PlainDirections(*layer._weights(), layer._clips, compute_dtype)

    @torch.no_grad()
    def forward(
        self, x: Tensor, batch_sizes: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run both directions like `LSTMLayer.forward`, but in the precision of the layer, even under autocast."""
        with torch.autocast(x.device.type, enabled=False):
            if self._plain is not None:
                return self._plain.run(x, h, c, batch_sizes)
            # One direction after the other, so that the matrices of a direction stay in the processor's cache.
            directions = zip(self._fused, x, h, c, strict=True)
            return _stack([run.run(x_, h_, c_, batch_sizes) for run, x_, h_, c_ in directions])


def _stack(outputs: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Stack the outputs and the final states of both directions."""
    y, h, c = (torch.stack(pair) for pair in zip(*outputs, strict=True))
    return y, h, c

"""Parameters and forward pass of one LSTM layer of a biLM, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from .config import BiLMConfig
from .kernels.fused_lstm import FusedDirection
from .kernels.fused_lstm_gradient import FusedLSTM
from .kernels.native import has_kernels
from .kernels.plain_lstm import Clips, Direction
from .kernels.plain_lstm_gradient import PlainLSTM
from .kernels.prepacked import MatmulWeight, PlainWeight, check_precision, prepack
from .matmul_precision import Precision


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
        with torch.autocast(device, enabled=False):
            tensors = x, h, c, *self.parameters()
            fused = has_kernels(compute_dtype, *tensors)
            if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
                run = self._fused_training if fused else self._plain_training
                return run(x, batch_sizes, h, c, compute_dtype)
            directions: Sequence[Direction | FusedDirection]
            if fused:
                directions = self._fused_directions(compute_dtype)
            else:
                directions = self._directions(lambda weight: PlainWeight(weight, compute_dtype))
            return _run_directions(x, directions, batch_sizes, h, c)

    def prepare_for_inference(self, precision: Precision) -> InferenceLayer:
        """Return a copy of the layer for prediction only, with converted and prepacked matrices.

        Later changes of the parameters may have no effect on the copy.

        Raises:
            ValueError: the device does not support the precision.
        """
        with torch.no_grad():
            check_precision(precision, self.input.device)
            compute_dtype = getattr(torch, precision)
            if has_kernels(compute_dtype, *self.parameters()):
                return InferenceLayer(self._fused_directions(compute_dtype))
            return InferenceLayer(self._directions(lambda weight: prepack(weight, precision)))

    def _plain_training(
        self, x: Tensor, batch_sizes: list[int], h: Tensor, c: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor, Tensor]:
        weights = self.input, self.recurrent, self._bias(), self.projection
        return PlainLSTM.apply(x, *weights, h, c, batch_sizes, self._clips, dtype)

    def _fused_training(
        self, x: Tensor, batch_sizes: list[int], h: Tensor, c: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor, Tensor]:
        directions = zip(x, zip(*self._parameters_by_direction(), strict=True), h, c, strict=True)
        return _stack_directions(
            [
                FusedLSTM.apply(x_, *weights, h_, c_, batch_sizes, self._clips, dtype)
                for x_, weights, h_, c_ in directions
            ]
        )

    @property
    def _clips(self) -> Clips:
        return Clips(self.cell_clip, self.proj_clip if self.projection is not None else None)

    def _parameters_by_direction(self) -> Iterator[Sequence[Tensor | None]]:
        """Yield the input matrix, the recurrent matrix, the bias (with the forget bias added) and the
        projection matrix or None, each as a pair (forward, backward)."""
        for pair in (self.input, self.recurrent, self._bias(), self.projection):
            yield (None, None) if pair is None else pair.unbind()

    def _bias(self) -> Tensor:
        """Return the bias with the forget bias added."""
        dim = self.bias.shape[1] // 4
        bias = self.bias.clone()
        bias[:, 2 * dim : 3 * dim] += self.forget_bias
        return bias

    def _fused_directions(self, compute_dtype: torch.dtype) -> list[FusedDirection]:
        directions: list[FusedDirection] = []
        for input, recurrent, bias, projection in zip(
            *self._parameters_by_direction(), strict=True
        ):
            assert input is not None and recurrent is not None and bias is not None
            directions.append(
                FusedDirection(input, recurrent, bias, projection, self._clips, compute_dtype)
            )
        return directions

    def _directions(self, matrix: Callable[[Tensor], MatmulWeight]) -> list[Direction]:
        directions: list[Direction] = []
        for input, recurrent, bias, projection in zip(
            *self._parameters_by_direction(), strict=True
        ):
            assert input is not None and recurrent is not None and bias is not None
            last = None if projection is None else matrix(projection)
            directions.append(Direction(matrix(input), matrix(recurrent), bias, last, self._clips))
        return directions


class InferenceLayer(nn.Module):
    """An LSTM layer for prediction only: the layer has no parameters, and its outputs have no autograd
    graph."""

    def __init__(self, directions: Sequence[Direction | FusedDirection]) -> None:
        super().__init__()
        self._directions = directions

    @torch.no_grad()
    def forward(
        self, x: Tensor, batch_sizes: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run both directions like `LSTMLayer.forward`, but in the precision of the layer, even under autocast."""
        with torch.autocast(x.device.type, enabled=False):
            return _run_directions(x, self._directions, batch_sizes, h, c)


def _run_directions(
    x: Tensor,
    directions: Sequence[Direction | FusedDirection],
    batch_sizes: list[int],
    h: Tensor,
    c: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    # One direction after the other, so that the matrices of a direction stay in the processor's cache.
    return _stack_directions(
        [
            direction.run(x_, h_, c_, batch_sizes)
            for x_, direction, h_, c_ in zip(x, directions, h, c, strict=True)
        ]
    )


def _stack_directions(
    outputs: Sequence[tuple[Tensor, Tensor, Tensor]],
) -> tuple[Tensor, Tensor, Tensor]:
    y, h, c = (torch.stack(pair) for pair in zip(*outputs, strict=True))
    return y, h, c

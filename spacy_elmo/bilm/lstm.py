"""One layer of the biLM's LSTM, both directions: its parameters, and how they are read with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from .config import BiLMConfig
from .kernels.fused_gradient import FusedRead
from .kernels.fused_lstm import FusedDirection, has_kernel
from .kernels.gradient import Read
from .kernels.prepacked import MatmulWeight, PlainWeight, ready
from .kernels.recurrence import Clips, Direction
from .matmul_precision import Precision


class LSTMLayer(nn.Module):
    """One layer, both directions. Direction 0 reads forward, direction 1 backward.

    Parameters hold the two directions along their first dimension and multiply from the right; gates lie
    in TensorFlow's order i, j, f, o.
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
        wanted = dim != width or config.square_projections
        self.projection = nn.Parameter(torch.empty(2, dim, width)) if wanted else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """TensorFlow's default start of bilm-tf: Glorot over the whole kernel [x ; h], bias 0."""
        rows, columns = 2 * self.input.shape[1], self.input.shape[2]
        bound = (6 / (rows + columns)) ** 0.5
        nn.init.uniform_(self.input, -bound, bound)
        nn.init.uniform_(self.recurrent, -bound, bound)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            bound = (6 / sum(self.projection.shape[1:])) ** 0.5
            nn.init.uniform_(self.projection, -bound, bound)

    def forward(
        self, x: Tensor, rows: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Read packed sequences (see `Packing`).

        Under `torch.autocast` the matrix products take its type; states, gates and sums stay as they are.

        Args:
            x: (2, M, P) what each direction reads.
            rows: sequences still read at each step; they sum to M.
            h, c: (2, B, P) and (2, B, C), the state before the first step, by rank. Not changed.

        Returns:
            (2, M, P) the outputs, and the state after each sequence's last step. No gradient flows
            out of a returned state: every system cuts it there.
        """
        device = x.device.type
        low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        with torch.autocast(device, enabled=False):
            if torch.is_grad_enabled() and any(
                t.requires_grad for t in (x, h, c, *self.parameters())
            ):
                parts = zip(*self._parameters_by_direction(), strict=True)
                function = FusedRead if has_kernel(low, x, h, c, *self.parameters()) else Read
                found = [
                    function.apply(x_, *own, h_, c_, rows, self._clips, low)
                    for x_, own, h_, c_ in zip(x, parts, h, c, strict=True)
                ]
                return _both(found)
            if has_kernel(low, x, h, c, *self.parameters()):
                return _read_both(x, self._fused_directions(low), rows, h, c)
            return _read_both(
                x, self._directions(lambda weight: PlainWeight(weight, low)), rows, h, c
            )

    def ready(self, precision: Precision) -> ReadyLayer:
        """The layer for prediction, its matrices made ready once. Later changes of the parameters may not show.

        Raises:
            ValueError: see `matrices.ready`.
        """
        with torch.no_grad():
            if precision == "bfloat16" and has_kernel(torch.bfloat16, *self.parameters()):
                return ReadyLayer(self._fused_directions(torch.bfloat16))
            return ReadyLayer(self._directions(lambda weight: ready(weight, precision)))

    @property
    def _clips(self) -> Clips:
        return Clips(self.cell_clip, self.proj_clip if self.projection is not None else None)

    def _parameters_by_direction(self) -> Iterator[Sequence[Tensor | None]]:
        """Input, recurrent, bias with the forget bias in it, and projection: a pair of each."""
        dim = self.bias.shape[1] // 4
        bias = self.bias.clone()
        bias[:, 2 * dim : 3 * dim] += self.forget_bias
        for pair in (self.input, self.recurrent, bias, self.projection):
            yield (None, None) if pair is None else pair.unbind()

    def _fused_directions(self, low: torch.dtype) -> list[FusedDirection]:
        parameters = zip(*self._parameters_by_direction(), strict=True)
        return [FusedDirection(*own, self._clips, low) for own in parameters]

    def _directions(self, matrix: Callable[[Tensor], MatmulWeight]) -> list[Direction]:
        found: list[Direction] = []
        for input, recurrent, bias, projection in zip(
            *self._parameters_by_direction(), strict=True
        ):
            assert input is not None and recurrent is not None and bias is not None
            last = None if projection is None else matrix(projection)
            found.append(Direction(matrix(input), matrix(recurrent), bias, last, self._clips))
        return found


class ReadyLayer(nn.Module):
    """An `LSTMLayer` for prediction alone: it has no parameters, and nothing that it returns has a graph."""

    def __init__(self, directions: Sequence[Direction | FusedDirection]) -> None:
        super().__init__()
        self._directions = directions

    @torch.no_grad()
    def forward(
        self, x: Tensor, rows: list[int], h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `LSTMLayer.forward`, but in the precision that it was made for, under autocast too."""
        with torch.autocast(x.device.type, enabled=False):
            return _read_both(x, self._directions, rows, h, c)


def _read_both(
    x: Tensor,
    directions: Sequence[Direction | FusedDirection],
    rows: list[int],
    h: Tensor,
    c: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    # A direction reads to its end before the other begins, so that its matrices stay in the cache.
    return _both(
        [
            direction.read(x_, h_, c_, rows)
            for direction, x_, h_, c_ in zip(directions, x, h, c, strict=True)
        ]
    )


def _both(found: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    y, h, c = (torch.stack(pair) for pair in zip(*found, strict=True))
    return y, h, c

"""The element-wise half of a step of the LSTM, forward and backward.

Used where there is no AVX512 kernel; `fused_lstm` computes the gates there.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .native import address, native_function


def forward(
    inputs: Tensor,
    recurrent: Tensor,
    bias: Tensor,
    clip: float | None,
    c: Tensor,
    hidden: Tensor,
    gates: Tensor | None = None,
    cells: Tensor | None = None,
) -> None:
    """c <- clip(σ(f) c + σ(i) tanh(j)); hidden <- σ(o) tanh(c). All tensors are contiguous.

    Args:
        inputs, recurrent: (n, 4C) x W_x and h W_h, gates in the order i, j, f, o.
        bias: (4C,) what is added to both, the forget bias in it.
        clip: of the cell state; None: no clip.
        c: (n, C), changed.
        hidden: (n, C), written, in the type of `inputs`.
        gates, cells: (n, 4C), in the type of `inputs`, and (n, C), written: the activated gates and the new c, for
            `backward`. Both or neither.
    """
    same = inputs.dtype == recurrent.dtype == hidden.dtype
    if same and (function := native_function("cell_forward", inputs, c, bias)):
        changed = map(address, (c, gates, cells, hidden))
        threads = torch.get_num_threads()
        function(
            threads, *c.shape, *map(address, (inputs, recurrent, bias)), _limit(clip), *changed
        )
        return
    z = inputs.to(c.dtype) + recurrent + bias
    i, j, f, o = z.chunk(4, 1)
    i.sigmoid_()
    j.tanh_()
    f.sigmoid_()
    o.sigmoid_()
    c.mul_(f).addcmul_(i, j)
    if clip is not None:
        c.clamp_(-clip, clip)
    hidden.copy_(c.tanh().mul_(o))
    if gates is not None and cells is not None:
        gates.copy_(z)
        cells.copy_(c)


def backward(
    gates: Tensor,
    cells: Tensor,
    before: Tensor,
    dhidden: Tensor,
    clip: float | None,
    dc: Tensor,
    dgates: Tensor,
    dbias: Tensor,
) -> None:
    """The gradient of `forward`. All tensors are contiguous.

    Args:
        gates, cells: as `forward` wrote them.
        before: (n, C) the c of the step before.
        dhidden: (n, C) the gradient of `hidden`.
        dc: (n, C) the gradient of c through the next step; receives that of the c before.
        dgates: (n, 4C), written, in the type of `dhidden`: the gradients before the activations.
        dbias: (4C,), to which those of all rows are added.
    """
    same = gates.dtype == dhidden.dtype == dgates.dtype
    if same and (function := native_function("cell_backward", dhidden, cells, before, dc, dbias)):
        saved = map(address, (gates, cells, before, dhidden))
        function(*dc.shape, *saved, _limit(clip), *map(address, (dc, dgates, dbias)))
        return
    i, j, f, o = gates.to(dc.dtype).chunk(4, 1)
    dhidden, squashed = dhidden.to(dc.dtype), cells.tanh()
    dc.add_(dhidden * o * (1 - squashed * squashed))
    if clip is not None:
        dc.masked_fill_(cells.abs() >= clip, 0.0)
    z = torch.cat(
        [
            dc * j * i * (1 - i),
            dc * i * (1 - j * j),
            dc * before * f * (1 - f),
            dhidden * squashed * o * (1 - o),
        ],
        1,
    )
    dgates.copy_(z)
    dbias.add_(z.sum(0))
    dc.mul_(f)


def _limit(clip: float | None) -> float:
    return math.inf if clip is None else clip

"""The element-wise half of a step of the LSTM, forward and backward.

Used where `fused_lstm` has no kernel: for int8, and where there are no kernels in C.
"""

from __future__ import annotations

import ctypes
import math

import torch
from torch import Tensor

from .native import address, float32_function

_SIZE, _POINTER, _NUMBER = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float


class _Step(ctypes.Structure):
    _fields_ = [
        *((name, _SIZE) for name in ("threads", "rows", "dim")),
        *((name, _POINTER) for name in ("inputs", "recurrent", "bias")),
        ("clip", _NUMBER),
        *((name, _POINTER) for name in ("state", "hidden")),
    ]


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
    if gates is None and (function := float32_function("step", inputs, recurrent, bias, c, hidden)):
        given, changed = map(address, (inputs, recurrent, bias)), map(address, (c, hidden))
        limit = math.inf if clip is None else clip
        function(_Step(torch.get_num_threads(), *c.shape, *given, limit, *changed))
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

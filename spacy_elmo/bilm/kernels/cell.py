"""Element-wise operations of one time step of an LSTM. They are used where `fused_lstm` has no kernel, for
example in int8 and in installations without C kernels."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .native import float32_function


def forward(
    inputs: Tensor, recurrent: Tensor, bias: Tensor, clip: float | None, c: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the new cell state c' = clip(σ(f) c + σ(i) tanh(j)) and the output σ(o) tanh(c').
    Differentiable.

    Args:
        inputs, recurrent: the input and the previous output, each multiplied by its weight matrix,
            (sequences, 4C). The columns of the gates are in the order i, j, f, o.
        bias: (4C,), including the forget bias.
        clip: limit of the cell state's magnitude; None: no limit.
        c: the cell state before the time step, (sequences, C), where C is its size.

    Returns:
        The output, (sequences, C), in the data type of `inputs`; and the new cell state, (sequences, C).
    """
    function = float32_function("step", inputs, recurrent, bias, c)
    if function and not torch.is_grad_enabled():
        inputs, recurrent = inputs.contiguous(), recurrent.contiguous()
        state = c.clone(memory_format=torch.contiguous_format)
        hidden = torch.empty_like(state)
        limit = math.inf if clip is None else float(clip)
        function(torch.get_num_threads(), *c.shape, inputs, recurrent, bias, limit, state, hidden)
        return hidden, state
    i, j, f, o = (inputs.to(c.dtype) + recurrent + bias).chunk(4, 1)
    c = torch.addcmul(f.sigmoid() * c, i.sigmoid(), j.tanh())
    if clip is not None:
        c = c.clamp(-clip, clip)
    return (o.sigmoid() * c.tanh()).to(inputs.dtype), c

"""Thinc layers whose output is a function in torch of arrays and of the layer's parameters.

The parameters stay thinc's. So averages, optimizers, copies and files treat them like those of any layer, which is not
true of the parameters inside a `PyTorchWrapper`: averages never reach them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from thinc.api import Model, torch2xp, xp2torch
from torch import Tensor

from ..bilm.kernels.native import inference_threads, one_thread_after_fork


def run(
    model: Model,
    function: Callable[..., Sequence[Tensor]],
    inputs: Sequence[Any],
    is_train: bool,
) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """Compute `function(parameters, *inputs)`, where `parameters` are the tensors of the layer by their names. In
    prediction, `inference_threads` says in how many threads.

    Args:
        model: the layer.
        function: returns a list of tensors.
        inputs: float arrays.

    Returns:
        The results as arrays, and a callback. It gets the gradients of the results, adds to the gradients of the
        layer's parameters, and returns the gradients of the inputs.
    """
    one_thread_after_fork()
    parameters = {
        name: xp2torch(model.get_param(name), requires_grad=is_train) for name in model.param_names
    }
    tensors = [xp2torch(array, requires_grad=is_train) for array in inputs]
    threads = contextlib.nullcontext() if is_train else inference_threads()
    with threads, torch.set_grad_enabled(is_train):
        results = function(parameters, *tensors)

    def backprop(gradients: Sequence[Any]) -> list[Any]:
        of_results = [xp2torch(gradient) for gradient in gradients]
        found = torch.autograd.grad(results, [*parameters.values(), *tensors], of_results)
        arrays: list[Any] = [torch2xp(gradient) for gradient in found]
        for name, gradient in zip(parameters, arrays, strict=False):
            model.inc_grad(name, gradient)
        return arrays[len(parameters) :]

    return [torch2xp(result) for result in results], backprop

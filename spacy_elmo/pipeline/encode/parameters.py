"""Functions for the parameters of a biLM. They select the parameters to train and their learning rates,
detect changes of parameters, and choose the data type of saved parameters."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ...bilm.config import BiLMConfig
from ...bilm.model import BiLM
from ..factory_options import Trainable


def require_gradients(bilm: BiLM, trainable: Trainable | None) -> None:
    """Enable gradients for the parameters that the option `trainable` selects (None: no parameters), and
    disable gradients for all others."""
    last_layer = f"lstm.{bilm.config.layers - 1}."
    prefix = {"all": "", "lstm": "lstm.", "top": last_layer}.get(trainable or "")
    for name, param in bilm.named_parameters():
        param.requires_grad_(prefix is not None and name.startswith(prefix))


def change_counters(module: nn.Module) -> list[tuple[int, int]]:
    """For each parameter, return its id, and how often torch has changed the parameter in place.

    Torch also counts changes by other code, such as `parameter.add_` or `load_state_dict`, but not changes of
    `parameter.data`.
    """
    return [(id(param), param._version) for param in module.parameters()]


def new_version() -> str:
    """Return a new unique identifier for the current values of all parameters."""
    return uuid.uuid4().hex


def factors_by_layer(factor: float | list[float], config: BiLMConfig) -> list[float]:
    """Return a list with the learning-rate factor of each layer of the biLM. Layer 0 is the token encoder.

    Args:
        factor: the option `learn_rate_factor`: one number for all layers, or one number for each layer.

    Raises:
        ValueError: `factor` is a list, but the length of the list is not the number of layers.
    """
    if not isinstance(factor, list):
        return [factor] * (config.layers + 1)
    if len(factor) != config.layers + 1:
        raise ValueError(
            f"learn_rate_factor = {factor}, but the biLM has {config.layers + 1} layers: the token encoder and"
            f" {config.layers} LSTM layers. List one factor for each, or give one number for all"
        )
    return factor


def layer_of(name: str) -> int:
    """Return the index of the layer that contains the parameter with this name. Layer 0 is the token
    encoder."""
    return int(name.split(".")[1]) + 1 if name.startswith("lstm.") else 0


def narrowest_exact_dtype(tensors: Iterable[Tensor]) -> torch.dtype:
    """Return float16 if float16 represents all values of the tensors exactly, as for weights from a float16
    file. Otherwise, return float32."""
    exact = all(torch.equal(t, t.half().to(t.dtype)) for t in tensors)
    return torch.float16 if exact else torch.float32

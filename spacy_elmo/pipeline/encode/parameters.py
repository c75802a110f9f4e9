"""Functions for the parameters of a biLM: their choice for training, learning rates, changes and number
type."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ...bilm.config import BiLMConfig
from ...bilm.model import BiLM
from ..factory_options import Trainable


def require_gradients(bilm: BiLM, trainable: Trainable | None) -> None:
    """Enable the gradients of the parameters to train (None: no parameters), and disable the others."""
    last_layer = f"lstm.{bilm.config.layers - 1}."
    prefix = {"all": "", "lstm": "lstm.", "top": last_layer}.get(trainable or "")
    for name, param in bilm.named_parameters():
        param.requires_grad_(prefix is not None and name.startswith(prefix))


def change_counters(module: nn.Module) -> list[tuple[int, int]]:
    """Return the id of each parameter, and the number of its in-place changes as counted by torch.

    Torch also counts changes by other code, such as `parameter.add_` or `load_state_dict`. It does not count changes of
    `parameter.data`.
    """
    return [(id(param), param._version) for param in module.parameters()]


def new_version() -> str:
    """Return a unique identifier for new values of the parameters."""
    return uuid.uuid4().hex


def factors_by_layer(factor: float | list[float], config: BiLMConfig) -> list[float]:
    """Return the factor of the learning rate for each layer of the biLM. Layer 0 is the token encoder.

    Raises:
        ValueError: `factor` is a list, but does not contain one factor per layer.
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
    """Return the layer to which the parameter with this name belongs; layer 0 is the token encoder."""
    return int(name.split(".")[1]) + 1 if name.startswith("lstm.") else 0


def narrowest_exact_dtype(tensors: Iterable[Tensor]) -> torch.dtype:
    """Return float16 if it represents all values exactly (as for weights from a float16 file), or else
    float32."""
    exact = all(torch.equal(t, t.half().to(t.dtype)) for t in tensors)
    return torch.float16 if exact else torch.float32

"""Where each of our numbers stands in the parameters of AllenNLP's biLM (its `_ElmoBiLm`), and back.

AllenNLP multiplies from the left, so its matrices are ours transposed. It packs a highway's two matrices into one, and
negates the carry gate, because its gate scales what is carried on. Its LSTM gates lie in the order i, f, j, o, ours in
i, j, f, o. TensorFlow's forget bias of 1 is inside its bias, and stays there: taking it out would round, and as it is,
with a `forget_bias` of 0, not a bit of a number changes.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ...bilm.config import BiLMConfig

_ENCODER = "_token_embedder."
CHARACTERS = _ENCODER + "_char_embedding_weights"
_DIRECTIONS = ("forward", "backward")


def to_allennlp(tensors: Mapping[str, Tensor], config: BiLMConfig) -> dict[str, Tensor]:
    """AllenNLP's parameters by its names, from the tensors of `BiLM.state_dict()`.

    Their first row of characters pads sentences, which no word of a sentence reads; ours does not exist, and theirs
    is zero.
    """
    state = {}
    characters = tensors["encoder.characters"]
    state[CHARACTERS] = torch.cat([torch.zeros_like(characters[:1]), characters])
    for i in range(len(config.filters)):
        state[f"{_ENCODER}char_conv_{i}.weight"] = tensors[f"encoder.filters.{i}"].permute(2, 1, 0)
        state[f"{_ENCODER}char_conv_{i}.bias"] = tensors[f"encoder.filter_biases.{i}"]
    for i in range(config.highways):
        for part in ("weight", "bias"):
            transform = tensors[f"encoder.highways.{i}.transform.{part}"].t()
            carry = tensors[f"encoder.highways.{i}.carry.{part}"].t()
            state[f"{_ENCODER}_highways._layers.{i}.{part}"] = torch.cat([transform, -carry])
    state[_ENCODER + "_projection.weight"] = tensors["encoder.projection.weight"].t()
    state[_ENCODER + "_projection.bias"] = tensors["encoder.projection.bias"]
    for level in range(config.layers):
        ours = f"lstm.{level}."
        for d, direction in enumerate(_DIRECTIONS):
            cell = f"_elmo_lstm.{direction}_layer_{level}."
            bias = _swapped(tensors[ours + "bias"][d], 0)
            bias[config.dim : 2 * config.dim] += config.forget_bias
            state[cell + "state_linearity.bias"] = bias
            for name, theirs in (("input", "input_linearity"), ("recurrent", "state_linearity")):
                state[f"{cell}{theirs}.weight"] = _swapped(tensors[ours + name][d], 1).t()
            state[cell + "state_projection.weight"] = tensors[ours + "projection"][d].t()
    return {name: tensor.contiguous() for name, tensor in state.items()}


def from_allennlp(state: Mapping[str, Tensor], config: BiLMConfig) -> dict[str, Tensor]:
    """The tensors of `BiLM.state_dict()` for a configuration whose `forget_bias` is 0, from AllenNLP's parameters."""
    tensors = {}
    tensors["encoder.characters"] = state[CHARACTERS][1:]
    for i in range(len(config.filters)):
        tensors[f"encoder.filters.{i}"] = state[f"{_ENCODER}char_conv_{i}.weight"].permute(2, 1, 0)
        tensors[f"encoder.filter_biases.{i}"] = state[f"{_ENCODER}char_conv_{i}.bias"]
    for i in range(config.highways):
        highway = from_highway(state, f"{_ENCODER}_highways._layers.{i}.")
        tensors |= {f"encoder.highways.{i}.{name}": tensor for name, tensor in highway.items()}
    tensors["encoder.projection.weight"] = state[_ENCODER + "_projection.weight"].t()
    tensors["encoder.projection.bias"] = state[_ENCODER + "_projection.bias"]
    for level in range(config.layers):
        layer = from_lstm_layer(state, "_elmo_lstm.", level)
        tensors |= {f"lstm.{level}.{name}": tensor for name, tensor in layer.items()}
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def from_highway(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors of a `Highway` of ours."""
    tensors = {}
    for part in ("weight", "bias"):
        transform, carry = state[prefix + part].chunk(2)
        tensors[f"transform.{part}"] = transform.t()
        tensors[f"carry.{part}"] = -carry.t()
    return tensors


def from_lstm_layer(state: Mapping[str, Tensor], prefix: str, level: int) -> dict[str, Tensor]:
    """The tensors of an `LSTMLayer` of ours, of both directions."""
    parts: dict[str, list[Tensor]] = {"input": [], "recurrent": [], "bias": [], "projection": []}
    for direction in _DIRECTIONS:
        cell = f"{prefix}{direction}_layer_{level}."
        parts["bias"].append(_swapped(state[cell + "state_linearity.bias"], 0))
        for name, theirs in (("input", "input_linearity"), ("recurrent", "state_linearity")):
            parts[name].append(_swapped(state[f"{cell}{theirs}.weight"].t(), 1))
        parts["projection"].append(state[cell + "state_projection.weight"].t())
    return {name: torch.stack(directions) for name, directions in parts.items()}


def _swapped(gates: Tensor, axis: int) -> Tensor:
    """A copy with the two middle gates in each other's place."""
    first, second, third, last = gates.chunk(4, axis)
    return torch.cat([first, third, second, last], axis)

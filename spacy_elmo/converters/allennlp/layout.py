"""Layout of AllenNLP's biLM parameters (`_ElmoBiLm`): conversion to our tensors and back.

- AllenNLP multiplies by `weight` from the left (`weight @ x`), so its matrices are the transposes of our
  matrices.
- AllenNLP concatenates the two matrices of a highway layer to one matrix. AllenNLP's gate scales the
  untransformed input. Our gate scales the transformed input, as in bilm-tf. We negate the parameters of the
  gate, because 1 - sigmoid(x) = sigmoid(-x).
- AllenNLP's LSTM gates have the order input, forget, candidate, output. Ours have the order input, candidate,
  forget, output.
- AllenNLP's bias includes TensorFlow's forget bias of 1. Subtracting 1 would cause rounding errors, so we
  keep the bias as it is, and set `forget_bias` to 0.
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
    """Convert the tensors of `BiLM.state_dict()` to AllenNLP's parameters, with AllenNLP's names.

    AllenNLP's character embedding matrix has an additional first row for padding. No word uses this row, so
    the row is set to 0.
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
    """Convert AllenNLP's parameters to the tensors of `BiLM.state_dict()`. The `forget_bias` of the biLM must
    be 0, because AllenNLP's bias includes the forget bias."""
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
    tensors |= from_lstm(state, "_elmo_lstm.", config.layers)
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def from_highway(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Convert AllenNLP's parameters of a highway layer, with names that start with `prefix`, to the tensors
    of our `Highway`."""
    tensors = {}
    for part in ("weight", "bias"):
        transform, carry = state[prefix + part].chunk(2)
        tensors[f"transform.{part}"] = transform.t()
        tensors[f"carry.{part}"] = -carry.t()
    return tensors


def from_lstm(state: Mapping[str, Tensor], prefix: str, layers: int) -> dict[str, Tensor]:
    """Convert AllenNLP's LSTM parameters, with names that start with `prefix`, to the tensors of our LSTM
    layers. Each of our tensors contains both directions."""
    tensors = {}
    for level in range(layers):
        forward, backward = (f"{prefix}{direction}_layer_{level}." for direction in _DIRECTIONS)
        for name, theirs in (
            ("input", "input_linearity.weight"),
            ("recurrent", "state_linearity.weight"),
            ("bias", "state_linearity.bias"),
            ("projection", "state_projection.weight"),
        ):
            both = torch.stack([state[forward + theirs], state[backward + theirs]])
            gates = both if name == "projection" else _swapped(both, 1)
            tensors[f"lstm.{level}.{name}"] = gates if name == "bias" else gates.mT
    return tensors


def _swapped(gates: Tensor, axis: int) -> Tensor:
    """Return a copy of an LSTM tensor in which the second and the third of the four gates along `axis` are
    exchanged."""
    first, second, third, last = gates.chunk(4, axis)
    return torch.cat([first, third, second, last], axis)

"""Conversion of the options of AllenNLP's ELMo to a `BiLMConfig`. If there are no options, the configuration
is derived from the shapes of the parameters."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import PureWindowsPath

from torch import Tensor

from ...bilm.config import BiLMConfig
from ..bilm_tf import options as bilm_tf
from .files import TrainedModel, settings
from .layout import CHARACTERS

# The options files of AllenNLP's published models. Their names contain the LSTM cells, the projection and the highways.
_PUBLISHED = re.compile(r"elmo_2x(\d+)_(\d+)_2048cnn_(\d)xhighway(_5\.5B)?_options\.json")
_SIZES = {("1024", "128", "1"), ("2048", "256", "1"), ("4096", "512", "2")}
ASSUMED = "relu, clips of 3, skip connections, 50 characters"
"""Settings that all published models share, and that cannot be derived from the shapes of the parameters."""


def config_of(
    model: TrainedModel, state: Mapping[str, Tensor], *, accept: bool
) -> tuple[BiLMConfig, list[str]]:
    """Return the configuration of the ELMo in an AllenNLP model, and notes about options that were assumed or
    ignored.

    Args:
        state: the parameters of the biLM.
        accept: if there is no options file, assume the options of the published models.

    Raises:
        ValueError: options are missing or impossible, or AllenNLP's ELMo cannot have these options.
    """
    if model.options is None:
        config, notes = _config_without_options(model, state, accept)
    elif isinstance(model.options.get("char_cnn"), Mapping):
        # AllenNLP ignores n_characters, because its table always has a row of padding.
        characters = {**model.options["char_cnn"], "n_characters": 261}
        config, notes = bilm_tf.config_of({**model.options, "char_cnn": characters})
    else:
        raise ValueError("char_cnn is missing, but every ELMo of AllenNLP needs it")
    if not config.skip:
        raise ValueError("lstm.use_skip_connections must be true, as in every ELMo of AllenNLP")
    square = config.projection in (config.dim, config.n_filters)
    return dataclasses.replace(config, forget_bias=0.0, square_projections=square), notes


def _config_without_options(
    model: TrainedModel, state: Mapping[str, Tensor], accept: bool
) -> tuple[BiLMConfig, list[str]]:
    config = _config_of_shapes(state)
    missing = [str(value) for _, value in settings(model.config, "options_file")]
    names = {PureWindowsPath(value).name for value in missing}
    if len(names) == 1 and _published(name := names.pop()) == config:
        return config, [f"{name} belongs to a published model with {ASSUMED}"]
    if not accept:
        reason = (
            f"config.json names the options file {missing[0]!r:.200}, which is missing"
            if missing
            else "the options file of the ELMo is missing, and the parameters do not determine all options"
        )
        raise ValueError(
            f"{reason}. Give the file with options (`--options`). Or set accept (`--accept`) to assume the options of"
            f" published models: {ASSUMED}. If the model has other options, its vectors will be wrong"
        )
    return config, [
        "no options file: took the sizes from the parameters, and assumed the other options of published models:"
        f" {ASSUMED}"
    ]


def _published(name: str) -> BiLMConfig | None:
    """Return the configuration of the published model that has an options file with the name `name`. Return
    None if there is no such model."""
    match = _PUBLISHED.fullmatch(name)
    if match is None or match.groups()[:3] not in _SIZES:
        return None
    return BiLMConfig(dim=int(match[1]), projection=int(match[2]), highways=int(match[3]))


def _config_of_shapes(state: Mapping[str, Tensor]) -> BiLMConfig:
    def sizes(name: str, axes: int) -> tuple[int, ...]:
        shape = tuple(state[name].shape) if name in state else None
        if shape is None or len(shape) != axes:
            actual = "is missing" if shape is None else f"has the shape {list(shape)}"
            raise ValueError(f"the tensor {name} {actual}, expected {axes} axes")
        return shape

    def count(pattern: str) -> int:
        return sum(bool(re.fullmatch(pattern, name)) for name in state)

    filters = []
    for i in range(count(r"_token_embedder\.char_conv_\d+\.weight")):
        number, _, width = sizes(f"_token_embedder.char_conv_{i}.weight", 3)
        filters.append((width, number))
    projection, dim = sizes("_elmo_lstm.forward_layer_0.state_projection.weight", 2)
    return BiLMConfig(
        dim=dim,
        projection=projection,
        layers=count(r"_elmo_lstm\.forward_layer_\d+\.state_projection\.weight"),
        char_dim=sizes(CHARACTERS, 2)[1],
        filters=tuple(filters),
        highways=count(r"_token_embedder\._highways\._layers\.\d+\.weight"),
    )

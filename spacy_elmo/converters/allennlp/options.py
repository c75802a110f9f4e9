"""The options of AllenNLP's ELMo as a `BiLMConfig`; where they are missing, the sizes come from its parameters."""

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

# AllenNLP's published models, by the file names of their options: LSTM cells, projection, highways.
_PUBLISHED = re.compile(r"elmo_2x(\d+)_(\d+)_2048cnn_(\d)xhighway(_5\.5B)?_options\.json")
_SIZES = {("1024", "128", "1"), ("2048", "256", "1"), ("4096", "512", "2")}
ASSUMED = "relu, clips of 3, skip connections, 50 characters"
"""Settings that no parameter shows; they hold for every published model."""


def config_of(
    model: TrainedModel, state: Mapping[str, Tensor], *, accept: bool
) -> tuple[BiLMConfig, list[str]]:
    """Return the configuration of an ELMo, and a note on every assumed or ignored option.

    Args:
        state: the parameters of the biLM.
        accept: assume the options of the published models if there is no options file.

    Raises:
        ValueError: options are missing or impossible, or AllenNLP has no such ELMo.
    """
    if model.options is None:
        config, notes = _config_without_options(model, state, accept)
    elif isinstance(model.options.get("char_cnn"), Mapping):
        # AllenNLP ignores n_characters, because its table always has a row of padding.
        characters = {**model.options["char_cnn"], "n_characters": 261}
        config, notes = bilm_tf.config_of({**model.options, "char_cnn": characters})
    else:
        raise ValueError("no char_cnn, without which AllenNLP has no ELMo")
    if not config.skip:
        raise ValueError(
            "lstm.use_skip_connections is not true, without which AllenNLP has no ELMo"
        )
    square = config.projection in (config.dim, config.n_filters)
    return dataclasses.replace(config, forget_bias=0.0, square_projections=square), notes


def _config_without_options(
    model: TrainedModel, state: Mapping[str, Tensor], accept: bool
) -> tuple[BiLMConfig, list[str]]:
    config = _config_of_shapes(state)
    missing = [str(value) for _, value in settings(model.config, "options_file")]
    names = {PureWindowsPath(value).name for value in missing}
    if len(names) == 1 and _published(name := names.pop()) == config:
        return config, [f"{name}, a published model: {ASSUMED}"]
    if not accept:
        reason = (
            f"config.json names the options file {missing[0]!r:.200}, which is missing"
            if missing
            else "there is no options file of its ELMo, and its parameters do not show all of them"
        )
        raise ValueError(
            f"{reason}. Give it with --options; --accept assumes {ASSUMED}, and gives wrong vectors if the model has"
            " others"
        )
    return config, [
        f"no options (--options FILE): sizes from the parameters; assumed, as in every published model: {ASSUMED}"
    ]


def _published(name: str) -> BiLMConfig | None:
    """Return the configuration of a model that AllenNLP has published, by the file name of its options, or None."""
    match = _PUBLISHED.fullmatch(name)
    if match is None or match.groups()[:3] not in _SIZES:
        return None
    return BiLMConfig(dim=int(match[1]), projection=int(match[2]), highways=int(match[3]))


def _config_of_shapes(state: Mapping[str, Tensor]) -> BiLMConfig:
    def sizes(name: str, axes: int) -> tuple[int, ...]:
        shape = tuple(state[name].shape) if name in state else None
        if shape is None or len(shape) != axes:
            actual = "there is no such tensor" if shape is None else f"got shape {list(shape)}"
            raise ValueError(f"{name}: expected a tensor of {axes} axes, but {actual}")
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

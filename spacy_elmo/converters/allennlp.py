"""Models of AllenNLP: the ELMo in a trained model (in), and a state dict for its class `Elmo` (out).

How the parameters of AllenNLP's biLM (`_ElmoBiLm`) differ from our tensors:

- AllenNLP multiplies by `weight` from the left (`weight @ x`), so its matrices are the transposes of our
  matrices.
- AllenNLP's character embedding matrix has an additional first row for padding, which no word uses. Export sets
  the row to 0.
- AllenNLP concatenates the two matrices of a highway layer to one matrix. AllenNLP's gate scales the
  untransformed input. Our gate scales the transformed input, as in bilm-tf. We negate the parameters of the
  gate, because 1 - sigmoid(x) = sigmoid(-x).
- AllenNLP's LSTM gates have the order input, forget, candidate, output. Ours have the order input, candidate,
  forget, output.
- AllenNLP's bias includes TensorFlow's forget bias of 1. Subtracting 1 would cause rounding errors, so we
  keep the bias as it is, and set `forget_bias` to 0.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import srsly
import torch
from torch import Tensor

from ..bilm.config import BiLMConfig
from ..bilm.weights import Weights
from ..files import all_or_nothing, read_json_object
from . import bilm_tf
from .layout import GATES, NEGATED, TRANSPOSED, Layout, Place
from .strict_check import check_arrays
from .untrusted_files import read_state_dict

# Names and layout

_ENCODER = "_token_embedder."
CHARACTERS = _ENCODER + "_char_embedding_weights"
DIRECTIONS = ("forward", "backward")


def highway_places(ours: str, theirs: str) -> dict[str, Place]:
    """Return the rows of a layout for the highways of AllenNLP."""
    return {
        f"{ours}highways.{{i}}.{gate}.{part}": Place(f"{theirs}._layers.{{i}}.{part}", turn)
        for part in ("weight", "bias")
        for gate, turn in (("transform", TRANSPOSED), ("carry", NEGATED))
    }


def lstm_places(theirs: str) -> dict[str, Place]:
    """Return the rows of a layout for the LSTM of AllenNLP."""
    cell = theirs + "{d}_layer_{i}."
    return {
        "lstm.{i}.input": Place(cell + "input_linearity.weight", GATES),
        "lstm.{i}.recurrent": Place(cell + "state_linearity.weight", GATES),
        "lstm.{i}.bias": Place(cell + "state_linearity.bias", GATES),
        "lstm.{i}.projection": Place(cell + "state_projection.weight", TRANSPOSED),
    }


_PLACES = {
    "encoder.characters": Place(CHARACTERS, padding=1),
    "encoder.filters.{i}": Place(_ENCODER + "char_conv_{i}.weight", TRANSPOSED),
    "encoder.filter_biases.{i}": Place(_ENCODER + "char_conv_{i}.bias"),
    **highway_places("encoder.", _ENCODER + "_highways"),
    "encoder.projection.weight": Place(_ENCODER + "_projection.weight", TRANSPOSED),
    "encoder.projection.bias": Place(_ENCODER + "_projection.bias"),
    **lstm_places("_elmo_lstm."),
}


# Files in

_PARAMETERS = ("weights.th", "best.th")


def convert(source: Path, *, options: Path | None = None) -> tuple[Weights, list[str]]:
    """Convert the biLM of a trained AllenNLP model.

    Args:
        source: folder with the content of an archive: `config.json`, and `weights.th` or `best.th`. Or a file
            of parameters, with or without a `config.json` in its folder.
        options: ELMo options file (options.json); None: the file that AllenNLP before 1.0 packed into the
            archive, or the only file in the folder whose name ends in `options.json`.

    Returns:
        The weights, and notes for the user.
    """
    folder, file = source.parent, source
    if not source.is_file():
        folder, file = source, _parameters(source)
    state = read_state_dict(file)
    settings = folder / "config.json"
    config = read_json_object(settings) if settings.exists() else {}
    options = options or _options_file(folder, config)
    shown = f"{file}, {options}"
    try:
        weights, notes = to_weights(state, bilm_tf.read_options(options), config)
    except ValueError as error:
        raise ValueError(f"{shown}: {error}") from error
    weights.card["converted_from"] = f"{file.name} (AllenNLP)"
    return weights, [f"read {shown}", *notes]


def _parameters(folder: Path) -> Path:
    for file in (folder / name for name in _PARAMETERS):
        if file.exists():
            return file
    names = ", ".join(path.name for path in sorted(folder.glob("*.th"))) or "none"
    raise ValueError(
        f"{folder} contains no {' or '.join(_PARAMETERS)}. Give the file of parameters, not its folder (.th files here:"
        f" {names})"
    )


def _options_file(folder: Path, settings: Mapping[str, Any]) -> Path:
    files = list(folder.glob("fta/*options_file")) or folder.glob("*options.json")
    named = [str(value) for _, value in _settings(settings, "options_file")]
    named_file = f" (config.json names {named[0]!r:.200})" if named else ""
    advice = "Give it with options (`--options`)"
    return bilm_tf.only(files, folder, f"options file of the ELMo{named_file}", advice)


# The conversion


def to_weights(
    state: Mapping[str, np.ndarray], options: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[Weights, list[str]]:
    """Convert the content of AllenNLP's files.

    A scalar mix is a weighted sum of the layers. The entry `scalar_mixes` of the model card is a list with a
    dict for each mix: "name", "weights" (one number per layer, before the softmax) and "gamma".

    Args:
        state: {name of a parameter: array}.
        options, settings: the content of options.json and config.json; empty settings: there is no such file.
    """
    prefixes = [name.removesuffix(CHARACTERS) for name in state if name.endswith(CHARACTERS)]
    if len(prefixes) != 1:
        names = ", ".join(prefixes or list(state)[:5])
        raise ValueError(
            f"expected one ELMo, with a parameter *{CHARACTERS}, but found {len(prefixes)} ({names})"
        )
    (prefix,) = prefixes
    elmo = prefix.removesuffix("_elmo_lstm.")
    arrays = {n.removeprefix(prefix): array for n, array in state.items() if n.startswith(prefix)}
    arrays.pop("_word_embedding.weight", None)  # a cache of the character vectors of words
    config, notes = _config_of(options)
    layout = Layout(_PLACES, config, DIRECTIONS)
    shapes, mixes = dict(layout.shapes), {}
    for last in filter(re.compile(re.escape(elmo) + r"scalar_mix_\d+\.gamma").fullmatch, state):
        name = last.removesuffix(".gamma")
        mixes[name] = [f"{name}.scalar_parameters.{i}" for i in range(config.layers + 1)] + [last]
        shapes |= {parameter: (1,) for parameter in mixes[name]}
    arrays |= {n: array for n, array in state.items() if n.startswith(f"{elmo}scalar_mix_")}
    check_arrays(arrays, shapes)
    tensors = layout.to_ours({name: torch.from_numpy(array) for name, array in arrays.items()})
    card: dict[str, Any] = {}
    for name, parameters in mixes.items():
        *numbers, gamma = (float(arrays[parameter][0]) for parameter in parameters)
        mix = {"name": name, "weights": numbers, "gamma": gamma}
        card.setdefault("scalar_mixes", []).append(mix)
        shown = ", ".join(f"{number:.4g}" for number in numbers)
        notes.append(f"{name}: weights {shown} (before the softmax), gamma {gamma:.4g}")
    if rest := [name for name in state if not name.startswith(elmo)]:
        notes.append(f"left out parameters that are not of the ELMo: {', '.join(rest)[:200]}")
    if norms := [path for path, value in _settings(settings, "do_layer_norm") if value is True]:
        notes.append(
            f"{', '.join(norms)} = true: AllenNLP normalizes the layers of this model over whole batches, so a vector"
            " depends on the other sentences in the batch. spacy-elmo does not"
        )
    return Weights(config, {n: tensor.float() for n, tensor in tensors.items()}, card=card), notes


def _config_of(options: Mapping[str, Any]) -> tuple[BiLMConfig, list[str]]:
    if not isinstance(options.get("char_cnn"), Mapping):
        raise ValueError("char_cnn is missing, but every ELMo of AllenNLP needs it")
    # AllenNLP ignores n_characters, because its table always has a row of padding.
    characters = {**options["char_cnn"], "n_characters": 261}
    config, notes = bilm_tf.config_of({**options, "char_cnn": characters})
    if not config.skip:
        raise ValueError("lstm.use_skip_connections must be true, as in every ELMo of AllenNLP")
    square = config.projection in (config.dim, config.n_filters)
    return dataclasses.replace(config, forget_bias=0.0, square_projections=square), notes


def _settings(config: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    """Yield the path (with dots) and the value of each setting with the name `key`, at any depth."""
    sections: list[tuple[str, Any]] = [("", config)]
    while sections:
        path, section = sections.pop(0)
        for name, value in enumerate(section) if isinstance(section, list) else section.items():
            if name == key:
                yield f"{path}{name}", value
            if isinstance(value, list | dict):
                sections.append((f"{path}{name}.", value))


# Files out

_OPTIONS, _STATE = FILES = ("options.json", "weights.th")
_CHARACTERS_OF_A_WORD = 50


def export(weights: Weights, folder: str | Path, *, force: bool = False) -> list[Path]:
    """Write `options.json` and `weights.th`, a state dict that AllenNLP's `Elmo` loads with `strict=True`.

    The state dict contains the scalar mixes (weighted sums of the layers) that the model card lists in
    `scalar_mixes`. If the card lists none, the state dict contains one untrained mix.
    """
    state = state_of(weights)
    with all_or_nothing(folder, FILES, force=force) as new:
        srsly.write_json(new / _OPTIONS, bilm_tf.options_of(weights.config))
        torch.save(state, new / _STATE)
    return [Path(folder) / name for name in FILES]


def state_of(weights: Weights) -> dict[str, Tensor]:
    """Return the state dict of AllenNLP's `Elmo`, in float32; see `export`."""
    config, layers = weights.config, weights.config.layers + 1
    if problems := inexpressible(config):
        raise ValueError("AllenNLP does not support this biLM:\n  " + "\n  ".join(problems))
    parameters = Layout(_PLACES, config, DIRECTIONS).to_theirs(weights.tensors)
    for name, parameter in parameters.items():
        if name.endswith("state_linearity.bias"):
            parameter[config.dim : 2 * config.dim] += config.forget_bias
    state = {f"_elmo_lstm.{name}": parameter for name, parameter in parameters.items()}
    mixes = weights.card.get("scalar_mixes") or [{"weights": [0.0] * layers, "gamma": 1.0}]
    try:  # users can edit the card
        for k, mix in enumerate(mixes):
            state[f"scalar_mix_{k}.gamma"] = torch.tensor([float(mix["gamma"])])
            for layer, number in zip(range(layers), mix["weights"], strict=True):
                name = f"scalar_mix_{k}.scalar_parameters.{layer}"
                state[name] = torch.tensor([float(number)])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f'scalar_mixes in the card must be a list of {{"weights": {layers} numbers, "gamma": number}}, but is'
            f" {mixes!r:.200}"
        ) from error
    return state


def inexpressible(config: BiLMConfig) -> list[str]:
    """Return the reasons why AllenNLP cannot load a biLM, whether from a state dict or from HDF5."""
    problems = []
    if config.n_words or config.is_many_langs:
        problems.append("AllenNLP's only input is the bytes of a word; this biLM has another input")
    elif config.max_characters != _CHARACTERS_OF_A_WORD:
        problems.append(
            f"max_characters = {config.max_characters}; AllenNLP's is always {_CHARACTERS_OF_A_WORD}"
        )
    if config.spelling:
        problems.append("this biLM changes the spelling of words (unicode_form, replace)")
    if not config.skip:
        problems.append("skip = false; AllenNLP's LSTM always has residual connections")
    if not config.square_projections:
        if config.dim == config.projection:
            problems.append(f"dim = projection = {config.dim}; AllenNLP's LSTM always projects")
        if not config.n_words and config.n_filters == config.projection:
            problems.append(
                f"filters = projection = {config.n_filters}; AllenNLP always projects the filters"
            )
    return problems

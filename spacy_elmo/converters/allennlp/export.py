"""Export of a biLM for the class `Elmo` of AllenNLP, as options.json and a state dict."""

from __future__ import annotations

from pathlib import Path

import srsly
import torch
from torch import Tensor

from ...bilm.config import BiLMConfig
from ...bilm.weights import Weights
from ...files import all_or_nothing
from ...output_file import OutputFile
from ..bilm_tf.export import options_of
from .layout import to_allennlp

_OPTIONS, _STATE = FILES = ("options.json", "weights.th")
_CHARACTERS = 50


def export(weights: Weights, folder: str | Path, *, force: bool = False) -> list[Path]:
    """Write options.json and a state dict of a biLM. AllenNLP's `Elmo` loads the state dict with
    `strict=True`.

    The state dict contains the scalar mixes (weighted sums of the layers) that the model card lists in
    `scalar_mixes`. If the card lists none, the state dict contains one untrained mix.

    Args:
        folder: folder to write `options.json` and `weights.th` to.
        force: replace existing files.

    Returns:
        The paths of the written files.

    Raises:
        OSError: a file exists and `force` is false, or the folder cannot be written.
        ValueError: AllenNLP does not support this biLM. The message names each reason.
        ValueError: `scalar_mixes` in the card is invalid.
    """
    state = state_of(weights)
    with all_or_nothing(folder, FILES, force=force) as new:
        srsly.write_json(new / _OPTIONS, options_of(weights.config))
        with OutputFile(new / _STATE, "wb") as file:
            torch.save(state, file)
            file.raise_error()
    return [Path(folder) / name for name in FILES]


def state_of(weights: Weights) -> dict[str, Tensor]:
    """Return the state dict of AllenNLP's `Elmo`, in float32.

    Raises:
        ValueError: AllenNLP does not support this biLM, or `scalar_mixes` in the card is invalid.
    """
    config = weights.config
    if problems := inexpressible(config):
        raise ValueError("AllenNLP does not support this biLM:\n  " + "\n  ".join(problems))
    tensors = {name: tensor.float() for name, tensor in weights.without_head().tensors.items()}
    state = {f"_elmo_lstm.{name}": t for name, t in to_allennlp(tensors, config).items()}
    for k, (numbers, gamma) in enumerate(_mixes(weights)):
        state[f"scalar_mix_{k}.gamma"] = torch.tensor([gamma])
        for layer, number in enumerate(numbers):
            state[f"scalar_mix_{k}.scalar_parameters.{layer}"] = torch.tensor([number])
    return state


def _mixes(weights: Weights) -> list[tuple[list[float], float]]:
    """Return the layer weights and the factor gamma of each scalar mix in the model card. Check the mixes,
    because users can edit the card."""
    layers = weights.config.layers + 1
    mixes = weights.card.get("scalar_mixes") or [{"weights": [0.0] * layers, "gamma": 1.0}]
    try:
        parsed = [([float(w) for w in mix["weights"]], float(mix["gamma"])) for mix in mixes]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f'scalar_mixes in the card must be a list of {{"weights": numbers, "gamma": number}}, but is {mixes!r:.200}'
        ) from error
    if any(len(numbers) != layers for numbers, _ in parsed):
        raise ValueError(
            f"Each of the scalar_mixes in the card must have {layers} weights, but they are {mixes!r:.200}"
        )
    return parsed


def inexpressible(config: BiLMConfig) -> list[str]:
    """Return the reasons why AllenNLP cannot load a biLM, whether from a state dict or from HDF5."""
    problems = []
    if config.n_words or config.has_lexicon:
        problems.append("AllenNLP's only input is the bytes of a word; this biLM has another input")
    elif config.max_characters != _CHARACTERS:
        problems.append(
            f"max_characters = {config.max_characters}; AllenNLP's indexer always returns {_CHARACTERS} characters"
        )
    if config.spelling:
        problems.append(
            "this biLM changes the spelling of words (unicode_form, replace); AllenNLP's indexer does not"
        )
    if not config.skip:
        problems.append("skip = false; AllenNLP's LSTM always has residual connections")
    if not config.square_projections:
        if config.dim == config.projection:
            problems.append(
                f"dim = projection = {config.dim}, so the LSTM has no projection; AllenNLP's LSTM always has one"
            )
        if not config.n_words and config.n_filters == config.projection:
            problems.append(
                f"filters = projection = {config.n_filters}, so the filters have no projection; AllenNLP's always have"
                " one"
            )
    return problems

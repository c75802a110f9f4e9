"""Conversion of the biLM and the scalar mixes (weighted sums of the layers) in a trained AllenNLP model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...bilm.config import BiLMConfig
from ...bilm.weights import Weights
from ..check_tensors import Shape, mismatches, our_shapes
from ..result import Conversion
from .files import TrainedModel, read_files, settings
from .layout import CHARACTERS, from_allennlp, to_allennlp
from .options import ASSUMED, config_of

_BILM = "_elmo_lstm."
_CACHE = "_word_embedding.weight"


def convert(
    source: str | Path,
    *,
    options: str | Path | None = None,
    prefix: str | None = None,
    accept: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Conversion:
    """Read a trained AllenNLP model from disk, and convert its biLM.

    Args:
        source, options: the model and its options file; see `read_files`.
        prefix, accept, dtype: see `to_weights`.

    Raises:
        OSError, ValueError: see `read_files` and `to_weights`.
    """
    model = read_files(source, options=options)
    return to_weights(model, prefix=prefix, accept=accept, dtype=dtype)


def to_weights(
    model: TrainedModel,
    *,
    prefix: str | None = None,
    accept: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Conversion:
    """Convert the biLM of a trained AllenNLP model that `read_files` has returned.

    A scalar mix is a weighted sum of the layers. The entry `scalar_mixes` of the model card is a list with a
    dict for each mix: "name", "weights" (one number per layer, before the softmax) and "gamma". If the model
    has no options file, the card also contains `assumed_options`.

    Args:
        prefix: prefix of the biLM's parameter names, needed only if the model contains several biLMs.
        accept: if there is no options file, assume the options of the published models. If the scalar mixes
            were trained with layer normalization over the whole batch, convert the model without this
            normalization.
        dtype: float32 keeps every bit; float16 halves the size of the file.

    Raises:
        ValueError: the model contains no ELMo, or no ELMo with this prefix.
        ValueError: the model contains several ELMos, and `prefix` is None.
        ValueError: the parameters do not fit the options (see `mismatches`).
        ValueError: the options are unknown or not supported (see `config_of`).
        ValueError: the scalar mixes use layer normalization, and `accept` is false.
    """
    prefix = _chosen_prefix(model, prefix)
    state = {
        name.removeprefix(prefix): tensor
        for name, tensor in model.state.items()
        if name.startswith(prefix)
    }
    notes = _notes_on_rest(model, prefix, state)
    state.pop(_CACHE, None)
    described = model.options_file or model.weights_file
    try:
        config, notes_on_options = config_of(model, state, accept=accept)
        shapes = _shapes(config, len(state))
    except ValueError as error:
        raise ValueError(f"{described}: {error}") from error
    if problems := mismatches({name: t.numpy() for name, t in state.items()}, shapes, dtype):
        raise ValueError(
            f"{model.weights_file} does not fit {described}:\n  " + "\n  ".join(problems)
        )
    tensors = from_allennlp(state, config)
    mixes = _mixes(model, prefix.removesuffix(_BILM), config.layers + 1)
    for mix in mixes:
        shown = ", ".join(f"{weight:.4g}" for weight in mix["weights"])
        notes.append(
            f"{mix['name']}: weights {shown} (before the softmax), gamma {mix['gamma']:.4g}"
        )
    if norms := [path for path, value in settings(model.config, "do_layer_norm") if value is True]:
        normalized = (
            f"{', '.join(norms)} = true: the model normalizes layers over whole batches, so a vector depends on the"
            " other sentences in the batch. spacy-elmo does not support this"
        )
        if not accept:
            raise ValueError(
                f"{model.weights_file}: {normalized}. To convert the model without this normalization, set accept"
                " (`--accept`)"
            )
        notes.append(normalized)
    card: dict[str, Any] = {"converted_from": f"{model.weights_file.name} (AllenNLP)"}
    if mixes:
        card["scalar_mixes"] = mixes
    if model.options is None:
        card["assumed_options"] = ASSUMED
    weights = Weights(config, {name: t.to(dtype) for name, t in tensors.items()}, card=card)
    return Conversion(weights, model.files, notes + notes_on_options)


def _chosen_prefix(model: TrainedModel, requested: str | None) -> str:
    prefixes = [name.removesuffix(CHARACTERS) for name in model.state if name.endswith(CHARACTERS)]
    if not prefixes:
        some = ", ".join(list(model.state)[:5]) or "none at all"
        raise ValueError(
            f"{model.weights_file} contains no ELMo: no parameter name ends in {CHARACTERS}. Its first parameters are"
            f" {some}"
        )
    names = [prefix.rstrip(".") for prefix in prefixes]
    if requested is None and len(prefixes) == 1:
        return prefixes[0]
    if requested in names:
        return prefixes[names.index(requested)]
    problem = (
        "contains several ELMos. Choose one with prefix (`--prefix`)"
        if requested is None
        else f"contains no ELMo with prefix (`--prefix`) {requested!r}"
    )
    listing = "".join(f"\n  {name}" for name in names)
    raise ValueError(f"{model.weights_file} {problem}. The prefixes are:{listing}")


def _notes_on_rest(model: TrainedModel, prefix: str, state: Mapping[str, Tensor]) -> list[str]:
    notes = []
    if _CACHE in state:
        notes.append(
            f"left out {_CACHE}, a cache of the character vectors of {len(state[_CACHE])} words"
        )
    elmo = prefix.removesuffix(_BILM)
    rest = [name for name in model.state if not name.startswith(elmo)]
    if rest:
        notes.append(f"left out {len(rest)} parameters of the model that do not belong to the ELMo")
    projection = re.sub(r"_elmo\.$", "_projection.weight", elmo)
    if projection in rest:
        notes.append(f"left out {projection}, which projects the mix of the layers")
    return notes


def _shapes(config: BiLMConfig, parameters: int) -> dict[str, Shape]:
    ours = {
        name: torch.empty(shape, device="meta")
        for name, shape in our_shapes(config, parameters).items()
    }
    return {name: tuple(t.shape) for name, t in to_allennlp(ours, config).items()}


def _mixes(model: TrainedModel, prefix: str, layers: int) -> list[dict[str, Any]]:
    names = sorted(
        name.removesuffix(".gamma")
        for name in model.state
        if re.fullmatch(re.escape(prefix) + r"scalar_mix_\d+\.gamma", name)
    )
    mixes = []
    for name in names:
        parts = [f"{name}.scalar_parameters.{layer}" for layer in range(layers)]
        tensors = [model.state.get(part) for part in (*parts, f"{name}.gamma")]
        numbers = [
            float(t) for t in tensors if t is not None and t.numel() == 1 and t.is_floating_point()
        ]
        if len(numbers) != layers + 1 or not all(map(math.isfinite, numbers)):
            raise ValueError(
                f"{model.weights_file}: {name} is not a mix of {layers} layers. scalar_parameters.0 to {layers - 1} and"
                " gamma must each contain one finite number"
            )
        *weights, gamma = numbers
        mixes.append({"name": name, "weights": weights, "gamma": gamma})
    return mixes

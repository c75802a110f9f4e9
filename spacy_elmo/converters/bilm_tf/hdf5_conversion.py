"""Conversion of bilm-tf's options.json and HDF5 arrays to `Weights`, and of `Weights` to arrays.

The conversion does not change any number. `BiLM` and TensorFlow have the same order of the LSTM gates (input,
candidate, forget, output), and both compute `x @ weight`. TensorFlow adds 1 to the forget gate at run time.
The bias in the file does not include this 1, so the configuration sets `forget_bias` to 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...bilm.config import BiLMConfig
from ...bilm.weights import Weights
from ...bilm.words.char_ids import BOS, EOS, UNK
from ..check_tensors import mismatches, our_shapes
from ..result import Conversion
from .files import SOFTMAX_BIAS, SOFTMAX_WEIGHT, TABLE, ForeignModel, read_files
from .options import config_of

_CELL = "RNN_{d}/RNN/MultiRNNCell/Cell{i}/LSTMCell/"
_ONE_CELL = "RNN_{d}/RNN/LSTMCell/"
# {our name: bilm-tf's name}. {i} is the number of a filter group, highway or layer. {d} is the direction (0 forward,
# 1 backward), which is the first axis of our tensors.
_NAMES = {
    "encoder.characters": "char_embed",
    "encoder.filters.{i}": "CNN/W_cnn_{i}",
    "encoder.filter_biases.{i}": "CNN/b_cnn_{i}",
    "encoder.highways.{i}.carry.weight": "CNN_high_{i}/W_carry",
    "encoder.highways.{i}.carry.bias": "CNN_high_{i}/b_carry",
    "encoder.highways.{i}.transform.weight": "CNN_high_{i}/W_transform",
    "encoder.highways.{i}.transform.bias": "CNN_high_{i}/b_transform",
    "encoder.projection.weight": "CNN_proj/W_proj",
    "encoder.projection.bias": "CNN_proj/b_proj",
    "encoder.words": TABLE,
    "lstm.{i}.input": _CELL + "W_0",
    "lstm.{i}.recurrent": _CELL + "W_0",
    "lstm.{i}.bias": _CELL + "B",
    "lstm.{i}.projection": _CELL + "W_P_0",
}


def convert(
    source: str | Path,
    *,
    options: str | Path | None = None,
    weights: str | Path | None = None,
    vocabulary: str | Path | None = None,
    softmax: str | Path | None = None,
    token_vectors: str | Path | None = None,
    dtype: torch.dtype = torch.float32,
) -> Conversion:
    """Read a bilm-tf model with HDF5 files, and convert it.

    Args:
        source, options, weights, vocabulary, softmax, token_vectors: see `read_files`.
        dtype: float32 keeps every bit; float16 halves the size of the file.

    Raises:
        OSError, ValueError: see `read_files` and `to_weights`.
    """
    model = read_files(
        source,
        options=options,
        weights=weights,
        vocabulary=vocabulary,
        softmax=softmax,
        token_vectors=token_vectors,
    )
    return to_weights(model, dtype=dtype)


def to_weights(model: ForeignModel, *, dtype: torch.dtype = torch.float32) -> Conversion:
    """Convert a bilm-tf model that `read_files` has returned.

    Raises:
        ValueError: the options do not describe a biLM, or the arrays, the softmax or the vocabulary do not
            fit the options (see `mismatches`).
    """
    if not any(name.startswith("RNN_1/") for name in model.arrays):
        raise ValueError(
            f"{model.weights_file} is not a biLM: it has no RNN_1, the LSTM of the backward direction"
        )
    options, arrays, notes = _with_token_vectors(model)
    arrays, notes_on_cells = _with_cell_level(arrays)
    try:
        config, notes_on_options = config_of(options, _number_of_rows(arrays.get(TABLE)))
        sources = _sources(config, len(arrays))
    except ValueError as error:
        raise ValueError(f"{model.options_file}: {error}") from error
    expected = {name: source.shape for source in sources.values() for name in source.names}
    if problems := mismatches(arrays, expected, dtype):
        raise ValueError(
            f"{model.weights_file} does not fit {model.options_file}:\n  " + "\n  ".join(problems)
        )
    if problem := _vocabulary_problem(config, model):
        raise ValueError(problem)
    tensors = {ours: torch.from_numpy(s.take(arrays)).to(dtype) for ours, s in sources.items()}
    tensors |= _head(config, model, dtype)
    card = {"converted_from": f"{model.weights_file.name} and {model.options_file.name} (bilm-tf)"}
    result = Weights(config, tensors, model.vocabulary or [], card)
    return Conversion(result, model.files, model.notes + notes + notes_on_cells + notes_on_options)


def to_arrays(weights: Weights) -> dict[str, np.ndarray]:
    """Convert weights, without the softmax head, to {bilm-tf's name: float32 array}.

    The function adds `forget_bias - 1` to the bias of the forget gate, because TensorFlow always adds 1.
    """
    arrays: dict[str, np.ndarray] = {}
    for ours, source in _sources(weights.config, len(weights.tensors)).items():
        tensor = weights.tensors[ours].float().numpy()
        parts = tensor if ours.startswith("lstm.") else [tensor]
        for name, part in zip(source.names, parts, strict=True):
            array = arrays.setdefault(name, np.zeros(source.shape, dtype=np.float32))
            array[source.part] = part
            if ours.endswith(".bias") and ours.startswith("lstm."):
                _, _, forget, _ = np.split(array, 4)
                forget += weights.config.forget_bias - 1.0
    return arrays


class _Source(NamedTuple):
    """The arrays of bilm-tf that contain the values of one tensor of `BiLM`."""

    names: tuple[str, ...]
    """Name of the array. For an LSTM tensor: the names of the arrays of both directions."""
    shape: tuple[int, ...]
    """Shape of each array."""
    part: Any
    """Index that selects the values of the tensor in each array."""

    def take(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the values of the tensor from {bilm-tf's name: array}. For an LSTM tensor, stack the arrays
        of both directions."""
        parts = [arrays[name][self.part] for name in self.names]
        return np.stack(parts) if len(parts) > 1 else np.ascontiguousarray(parts[0])


def _sources(config: BiLMConfig, arrays: int) -> dict[str, _Source]:
    """Return for each tensor of `BiLM.state_dict()` the arrays of bilm-tf that contain its values, as
    {name of the tensor: `_Source`}.

    Args:
        arrays: the number of arrays in the weights file.
    """
    shapes = our_shapes(config, arrays)
    sources, width = {}, config.projection
    for ours, shape in shapes.items():
        number = "".join(re.findall(r"\d+", ours))
        pattern = _NAMES[re.sub(r"\d+", "{i}", ours)]
        names = tuple(dict.fromkeys(pattern.format(i=number, d=d) for d in (0, 1)))
        part: Any = ...
        if ours.startswith("lstm."):
            shape = shape[1:]
        if ours.startswith("encoder.filters."):  # a 2-d convolution over an image of height 1
            shape, part = (1, *shape), 0
        if pattern.endswith("/W_0"):  # the kernel of [x ; h]: the rows of the input come first
            part = slice(0, width) if ours.endswith("input") else slice(width, 2 * width)
            shape = (2 * width, shape[1])
        sources[ours] = _Source(names, shape, part)
    return sources


def _with_token_vectors(
    model: ForeignModel,
) -> tuple[Mapping[str, Any], dict[str, np.ndarray], list[str]]:
    """If the model has token vectors, replace the token encoder by these vectors.

    The converted biLM then looks up the vector of each word, as in bilm-tf's `TokenBatcher`.

    Returns:
        The options and the arrays of the resulting model, and notes for the user.
    """
    if model.token_vectors is None or model.token_vectors_file is None:
        return model.options, model.arrays, []
    arrays = {name: array for name, array in model.arrays.items() if name.startswith("RNN_")}
    arrays[TABLE] = model.token_vectors
    options = {name: value for name, value in model.options.items() if name != "char_cnn"}
    options["n_tokens_vocab"] = _number_of_rows(model.token_vectors)
    note = f"the token vectors in {model.token_vectors_file.name} replace the token encoder"
    return options, arrays, [note]


def _with_cell_level(
    arrays: Mapping[str, np.ndarray],
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Insert `MultiRNNCell/Cell0` into the names of arrays, because TensorFlow omits it if there is only one
    layer.

    Returns:
        {new name: array}, and notes for the user.
    """
    renamed = {}
    for name, array in arrays.items():
        for d in (0, 1):
            name = name.replace(_ONE_CELL.format(d=d), _CELL.format(d=d, i=0))
        renamed[name] = array
    if renamed.keys() == arrays.keys():
        return renamed, []
    return renamed, ["the model has one layer, in RNN_*/RNN/LSTMCell"]


def _number_of_rows(table: np.ndarray | None) -> int:
    return len(table) if table is not None and table.ndim else 0


def _head(config: BiLMConfig, model: ForeignModel, dtype: torch.dtype) -> dict[str, Tensor]:
    """Convert the softmax of a bilm-tf model, if it has one, to the tensors `head.weight` and `head.bias`."""
    if not model.softmax:
        return {}
    rows = len(model.vocabulary or [])
    shapes = {SOFTMAX_WEIGHT: (rows, config.projection), SOFTMAX_BIAS: (rows,)}
    if problems := mismatches(model.softmax, shapes, dtype):
        raise ValueError(
            f"{model.softmax_file} does not fit {model.options_file} and the {rows:,} words of"
            f" {model.vocabulary_file}:\n  " + "\n  ".join(problems)
        )
    return {
        "head.weight": torch.from_numpy(model.softmax[SOFTMAX_WEIGHT]).to(dtype),
        "head.bias": torch.from_numpy(model.softmax[SOFTMAX_BIAS]).to(dtype)[:, None],
    }


def _vocabulary_problem(config: BiLMConfig, model: ForeignModel) -> str | None:
    words, path = model.vocabulary, model.vocabulary_file
    if not config.n_words and not model.softmax:
        if words is None:
            return None
        return (
            f"The vocabulary {path} cannot be used: a model with character input and without a softmax has no"
            " vocabulary. Leave out vocabulary (`--vocabulary`)"
        )
    if words is None:
        return (
            "A model with word input needs a vocabulary file with one word per line. Give it with vocabulary"
            " (`--vocabulary`)"
        )
    if config.n_words and len(words) != config.n_words:
        return f"The vocabulary {path} has {len(words)} words, but the word table `embedding` has {config.n_words} rows"
    if missing := [word for word in (BOS, EOS, UNK) if word not in words]:
        return f"The vocabulary {path} does not contain {', '.join(missing)}"
    return None

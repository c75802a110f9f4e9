"""bilm-tf's and AllenNLP's weights to ours, and back: options.json and HDF5 arrays, `Weights`.

The numbers stay as they are: gates keep TensorFlow's order i, j, f, o, no bias is folded into another. That
TensorFlow adds 1 to the forget gate at run time, outside the file, is said by `forget_bias` of the configuration.
Neither is anything transposed, because our matrices multiply from the right as TensorFlow's do.
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
from ..conversion import Conversion
from ..strict import mismatches, our_shapes
from .files import SOFTMAX_BIAS, SOFTMAX_WEIGHT, TABLE, ForeignModel, read_files
from .options import config_of

_CELL = "RNN_{d}/RNN/MultiRNNCell/Cell{i}/LSTMCell/"
_ONE_CELL = "RNN_{d}/RNN/LSTMCell/"
# Ours: theirs. {i} counts filter groups, highways or layers; {d} is the direction, 0 forward and 1 backward,
# both of which lie along the first axis of our tensors.
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
    """Read a model in bilm-tf's format and convert it.

    Args:
        source, options, weights, vocabulary, softmax, token_vectors: as of `read_files`.
        dtype: float32 keeps every bit; float16 halves the file.

    Raises:
        OSError, ValueError: as of `read_files` and `to_weights`.
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
    """The conversion itself: a function of what was read.

    Raises:
        ValueError: the options are not those of a biLM; or the arrays do not fit them (names each that is
            missing, unexpected, of wrong shape or type, or not finite); or the softmax or the vocabulary does not.
    """
    if not any(name.startswith("RNN_1/") for name in model.arrays):
        raise ValueError(f"{model.weights_file}: no RNN_1: a model of one direction is no biLM")
    options, arrays, notes = _with_token_vectors(model)
    arrays, notes_on_cells = _with_cell_level(arrays)
    try:
        config, notes_on_options = config_of(options, _rows(arrays.get(TABLE)))
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
    """The way back: float32 arrays by bilm-tf's names. A head is not among them; it has a file of its own.

    TensorFlow adds 1 to the forget gate, so what a model's `forget_bias` says otherwise goes into the bias.
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
    """Where one of our tensors comes from."""

    names: tuple[str, ...]
    """One array, or one for each direction."""
    shape: tuple[int, ...]
    """Of each array."""
    part: Any
    """The index of what is ours in it."""

    def take(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        parts = [arrays[name][self.part] for name in self.names]
        return np.stack(parts) if len(parts) > 1 else np.ascontiguousarray(parts[0])


def _sources(config: BiLMConfig, arrays: int) -> dict[str, _Source]:
    """By the name of our tensor. What a configuration does not have, it does not ask for: `CNN_proj` where
    the filters are as many as the projection is wide, `W_P_0` where that is `dim`."""
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
    """Options, arrays and a note: a table of token vectors makes word input of any model, as bilm-tf's own
    `TokenBatcher` reads it. What the table was computed from is not needed any more."""
    if model.token_vectors is None or model.token_vectors_file is None:
        return model.options, model.arrays, []
    arrays = {name: array for name, array in model.arrays.items() if name.startswith("RNN_")}
    arrays[TABLE] = model.token_vectors
    options = {name: value for name, value in model.options.items() if name != "char_cnn"}
    options["n_tokens_vocab"] = _rows(model.token_vectors)
    file = model.token_vectors_file.name
    return (
        options,
        arrays,
        [f"the table of {file} takes the place of the model's own token vectors"],
    )


def _with_cell_level(
    arrays: Mapping[str, np.ndarray],
) -> tuple[dict[str, np.ndarray], list[str]]:
    """TensorFlow writes no `MultiRNNCell/Cell0` for a model of one layer; here it gets one."""
    renamed = {}
    for name, array in arrays.items():
        for d in (0, 1):
            name = name.replace(_ONE_CELL.format(d=d), _CELL.format(d=d, i=0))
        renamed[name] = array
    if renamed.keys() == arrays.keys():
        return renamed, []
    return renamed, ["one layer: its arrays lie in RNN_*/RNN/LSTMCell, without MultiRNNCell/Cell0"]


def _rows(table: np.ndarray | None) -> int:
    return len(table) if table is not None and table.ndim else 0


def _head(config: BiLMConfig, model: ForeignModel, dtype: torch.dtype) -> dict[str, Tensor]:
    """The tensors of our head, from the softmax."""
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
    if not config.words and not model.softmax:
        if words is None:
            return None
        return f"{path}: a model with character input has no table of words to name; leave the vocabulary out"
    if words is None:
        return "A model with word input needs its vocabulary file, one word a line"
    if config.words and len(words) != config.words:
        return f"{path}: {len(words)} words, expected {config.words}, the rows of `embedding`"
    if missing := [word for word in (BOS, EOS, UNK) if word not in words]:
        return f"{path}: lacks {', '.join(missing)}"
    return None

"""Conversion of an ELMoForManyLangs model to our `Weights`.

ELMoForManyLangs uses AllenNLP's LSTM and highway layers. These layers compute `weight @ x`. The LSTM gates
have the order input, forget, candidate, output. The LSTM bias includes the forget bias of 1, so the
configuration sets `forget_bias` to 0. The gate of AllenNLP's highway layer scales the untransformed input.
Our gate scales the transformed input, as in bilm-tf. We negate the parameters of the gate, because 1 -
sigmoid(x) = sigmoid(-x). No other number changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ...bilm.config import BiLMConfig
from ...bilm.weights import Weights
from ..allennlp.layout import from_highway, from_lstm
from ..check_tensors import Shape, check_depth, mismatches
from ..result import Conversion
from .files import PARTS, ManyLangsModel, read_files
from .options import config_of

# In the order of the first rows of our `Alphabet`, where the last two mark the start and the end of a word.
# ELMoForManyLangs starts a word with `<eow>` and ends it with `<bow>`, in training and in inference.
_MARKS = ("<bos>", "<eos>", "<oov>", "<pad>", "<eow>", "<bow>")
_FILES = " and ".join(f"{part}.pkl" for part in PARTS)
_SPECIAL_WORDS = ("<bos>", "<eos>", "<oov>")


def convert(folder: str | Path, *, dtype: torch.dtype = torch.float32) -> Conversion:
    """Read an ELMoForManyLangs model from a folder, and convert it.

    Args:
        folder: folder with the files of the model; see `read_files`.
        dtype: float32 keeps every bit; float16 halves the size of the file.

    Raises:
        OSError, ValueError: see `read_files` and `to_weights`.
    """
    return to_weights(read_files(folder), dtype=dtype)


def to_weights(model: ManyLangsModel, *, dtype: torch.dtype = torch.float32) -> Conversion:
    """Convert an ELMoForManyLangs model that `read_files` has returned.

    Raises:
        ValueError: the options do not describe a supported biLM, a dictionary lacks a special symbol, or the
            tensors do not fit the options (see `mismatches`).
    """
    _check_specials(model)
    words, symbols = model.words or [], model.symbols or []
    rows, alphabet = _alphabet(symbols)
    try:
        config, notes = config_of(model.options, words=len(words), characters=len(alphabet))
        check_depth(config, len(model.arrays))
    except ValueError as error:
        raise ValueError(f"{model.folder}, {model.options_name}: {error}") from error
    if problems := mismatches(model.arrays, _shapes(config, len(symbols)), dtype):
        raise ValueError(
            f"{model.folder}: the tensors do not fit {model.options_name} and the dictionaries:\n  "
            + "\n  ".join(problems)
        )
    tensors = {
        name: tensor.to(dtype).contiguous()
        for name, tensor in _tensors(model.arrays, config, rows).items()
    }
    card = {"converted_from": f"{_FILES} (ELMoForManyLangs)"}
    notes = [f"network: {model.options_name}", *model.notes, *notes]
    if unused := len(symbols) - len(rows):
        notes.append(
            f"char.dic: left out {unused} symbols of several characters, because no word contains them"
        )
    return Conversion(Weights(config, tensors, words, card, alphabet), model.files, notes)


def _alphabet(symbols: list[str]) -> tuple[list[int], str]:
    """Choose the rows of our character embedding matrix: first the special symbols, then the single
    characters.

    Args:
        symbols: symbol of each row of ELMoForManyLangs' character embedding matrix.

    Returns:
        For each row of our matrix, the index of the same symbol in ELMoForManyLangs' matrix. Also the single
        characters as one string.
    """
    row = {symbol: number for number, symbol in enumerate(symbols)}
    characters = [symbol for symbol in symbols if len(symbol) == 1]
    return [row[s] for s in [*_MARKS, *characters]] if symbols else [], "".join(characters)


def _check_specials(model: ManyLangsModel) -> None:
    problems = [
        f"{model.folder / name} lacks the special symbols {', '.join(missing)}"
        for name, symbols, needed in (
            ("word.dic", model.words, _SPECIAL_WORDS),
            ("char.dic", model.symbols, _MARKS),
        )
        if symbols is not None and (missing := [s for s in needed if s not in symbols])
    ]
    if problems:
        raise ValueError("\n  ".join(problems))


def _shapes(config: BiLMConfig, symbols: int) -> dict[str, Shape]:
    """Return {name: expected shape} for the tensors of an ELMoForManyLangs model.

    Args:
        symbols: number of rows of ELMoForManyLangs' character embedding matrix.
    """
    n, width, cells = config.n_filters, config.projection, config.dim
    features = config.word_dim
    shapes: dict[str, Shape] = {}
    if config.n_words:
        shapes["word_emb_layer.embedding.weight"] = (config.n_words, config.word_dim)
    if config.n_symbols:
        features += n
        shapes["char_emb_layer.embedding.weight"] = (symbols, config.char_dim)
        for i, (positions, number) in enumerate(config.filters):
            shapes[f"convolutions.{i}.weight"] = (number, config.char_dim, positions)
            shapes[f"convolutions.{i}.bias"] = (number,)
        for i in range(config.highways):
            shapes[f"highways._layers.{i}.weight"] = (2 * n, n)
            shapes[f"highways._layers.{i}.bias"] = (2 * n,)
    shapes |= {"projection.weight": (width, features), "projection.bias": (width,)}
    shapes = {f"token_embedder.{name}": shape for name, shape in shapes.items()}
    for level in range(config.layers):
        for direction in ("forward", "backward"):
            cell = f"encoder.{direction}_layer_{level}."
            shapes[cell + "input_linearity.weight"] = (4 * cells, width)
            shapes[cell + "state_linearity.weight"] = (4 * cells, width)
            shapes[cell + "state_linearity.bias"] = (4 * cells,)
            shapes[cell + "state_projection.weight"] = (width, cells)
    return shapes


def _tensors(
    arrays: Mapping[str, np.ndarray], config: BiLMConfig, rows: list[int]
) -> dict[str, Tensor]:
    """Convert ELMoForManyLangs' arrays to the tensors of `BiLM.state_dict()`.

    Args:
        rows: for each row of our character embedding matrix, the row index in ELMoForManyLangs' matrix.
    """
    theirs = {name: torch.from_numpy(array) for name, array in arrays.items()}
    embedder, tensors = "token_embedder.", {}
    if config.n_words:
        tensors["encoder.words"] = theirs[embedder + "word_emb_layer.embedding.weight"]
    if config.n_symbols:
        characters = theirs[embedder + "char_emb_layer.embedding.weight"]
        tensors["encoder.cnn.characters"] = characters[rows]
        for i in range(len(config.filters)):
            convolution = f"{embedder}convolutions.{i}."
            tensors[f"encoder.cnn.filters.{i}"] = theirs[convolution + "weight"].permute(2, 1, 0)
            tensors[f"encoder.cnn.filter_biases.{i}"] = theirs[convolution + "bias"]
        for i in range(config.highways):
            highway = from_highway(theirs, f"{embedder}highways._layers.{i}.")
            tensors |= {f"encoder.cnn.highways.{i}.{name}": t for name, t in highway.items()}
    tensors["encoder.projection.weight"] = theirs[embedder + "projection.weight"].t()
    tensors["encoder.projection.bias"] = theirs[embedder + "projection.bias"]
    return tensors | from_lstm(theirs, "encoder.", config.layers)

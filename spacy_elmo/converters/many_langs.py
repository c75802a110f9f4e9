"""Models of ELMoForManyLangs (in).

ELMoForManyLangs uses AllenNLP's LSTM and highway layers; see `allennlp.py`. Its LSTM bias includes the forget bias
of 1, so the configuration sets `forget_bias` to 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import torch

from ..bilm.config import N_MARKS, BiLMConfig
from ..bilm.weights import Weights
from ..files import read_json_object
from .allennlp import DIRECTIONS, highway_places, lstm_places
from .layout import TRANSPOSED, Layout, Place
from .options import OptionsReader
from .strict_check import check_arrays
from .untrusted_files import one_error, read_state_dict

_PARTS = ("encoder", "token_embedder")
"""Names of the two parts of a model. Each part is a file, such as `encoder.pkl`."""
# In the order of the first rows of our `Alphabet`, where the last two mark the start and the end of a word.
# ELMoForManyLangs starts a word with `<eow>` and ends it with `<bow>`, in training and in inference.
_MARKS = ("<bos>", "<eos>", "<oov>", "<pad>", "<eow>", "<bow>")
_SPECIAL_WORDS = ("<bos>", "<eos>", "<oov>")

_EMBEDDER = "token_embedder."
_CHARACTERS = _EMBEDDER + "char_emb_layer.embedding.weight"
# A model without characters has no part `cnn`.
_PLACES = {
    "encoder.words": Place(_EMBEDDER + "word_emb_layer.embedding.weight"),
    "encoder.cnn.characters": Place(_CHARACTERS),
    "encoder.cnn.filters.{i}": Place(_EMBEDDER + "convolutions.{i}.weight", TRANSPOSED),
    "encoder.cnn.filter_biases.{i}": Place(_EMBEDDER + "convolutions.{i}.bias"),
    **highway_places("encoder.cnn.", _EMBEDDER + "highways"),
    "encoder.projection.weight": Place(_EMBEDDER + "projection.weight", TRANSPOSED),
    "encoder.projection.bias": Place(_EMBEDDER + "projection.bias"),
    **lstm_places("encoder."),
}

# The configurations that ELMoForManyLangs ships (both have the same content in 0.0.4.post2). Most published models do
# not contain a configuration; they name one of these two, by its path on a machine of the authors.
_SHIPPED = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")
_SHIPPED_OPTIONS = {
    "encoder": {
        "name": "elmo", "projection_dim": 512, "cell_clip": 3, "proj_clip": 3, "dim": 4096, "n_layers": 2
    },
    "token_embedder": {
        "name": "cnn", "activation": "relu", "n_highway": 2, "word_dim": 100, "char_dim": 50,
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "max_characters_per_token": 50,
    },
}  # fmt: skip


def convert(folder: Path) -> tuple[Weights, list[str]]:
    """Convert an ELMoForManyLangs model: a folder with `config.json`, `word.dic`, `char.dic`, `token_embedder.pkl`
    and `encoder.pkl`. Return the weights, and notes for the user."""
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not the folder of an ELMoForManyLangs model")
    options, name = _network(folder)
    embedder = options["token_embedder"]
    # A character model also has a word.dic: the words that it predicted in training. It is not needed.
    words = _read_lexicon(folder / "word.dic", _SPECIAL_WORDS) if embedder.get("word_dim") else []
    symbols = _read_lexicon(folder / "char.dic", _MARKS) if embedder.get("char_dim") else []
    arrays = {
        f"{part}.{name}": array
        for part in _PARTS
        for name, array in read_state_dict(folder / f"{part}.pkl").items()
    }
    try:
        weights, notes = to_weights(options, arrays, words, symbols)
    except ValueError as error:
        raise ValueError(f"{folder}, with the network of {name}: {error}") from error
    weights.card["converted_from"] = "encoder.pkl and token_embedder.pkl (ELMoForManyLangs)"
    return weights, [f"read {folder}, with the network of {name}", *notes]


def _network(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the network configuration that `config.json` names, and its name. Unlike ELMoForManyLangs, this function
    reads no file outside the folder."""
    config_file = folder / "config.json"
    config_path = read_json_object(config_file).get("config_path")
    if not isinstance(config_path, str):
        raise ValueError(
            f'{config_file} has no "config_path", which should name the network configuration'
        )
    name = PureWindowsPath(config_path).name  # splits at both kinds of slash
    if not (folder / name).is_file() and name in _SHIPPED:
        return _SHIPPED_OPTIONS, f"{name}, as shipped with ELMoForManyLangs"
    if not name or not (folder / name).is_file():
        raise FileNotFoundError(
            f"{config_file} names the network configuration {config_path!r}, but {folder} contains no {name!r}. Put it"
            f" there. ELMoForManyLangs itself ships only {', '.join(_SHIPPED)}"
        )
    options = read_json_object(folder / name)
    if not all(isinstance(options.get(part), dict) for part in _PARTS):
        raise ValueError(f"{folder / name} must have the sections {' and '.join(_PARTS)}")
    return options, name


def _read_lexicon(path: Path, needed: tuple[str, ...]) -> list[str]:
    """Read word.dic or char.dic, and return the symbols in the order of their rows.

    Each line has a symbol, a tab, and the number of the symbol's row in the embedding matrix. As in
    ELMoForManyLangs' `elmo.py`, every Unicode line break ends a line, and Unicode spaces around a line are
    removed. The symbol U+3000 is a Unicode space, so a line without a symbol means U+3000.
    """
    with one_error(path, "a dictionary of ELMoForManyLangs"):
        lines = path.read_text("utf8").splitlines()
        symbols: dict[int, str] = {}
        for line in lines:
            *symbol, row = line.strip().split("\t")
            if len(symbol) > 1 or not re.fullmatch("[0-9]{1,9}", row) or int(row) in symbols:
                raise ValueError(f"{line!r:.60}: expected a symbol, a tab and a new row number")
            symbols[int(row)] = symbol[0] if symbol else "\u3000"
        ordered = [symbols.get(row) for row in range(len(lines))]
        if None in ordered or len(set(ordered)) < len(ordered) or not set(needed) <= set(ordered):
            raise ValueError(
                f"the rows are not 0 to {len(lines) - 1}, or symbols occur twice, or one of {', '.join(needed)} is"
                " missing"
            )
        return [symbol for symbol in ordered if symbol is not None]


def to_weights(
    options: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    words: list[str],
    symbols: list[str],
) -> tuple[Weights, list[str]]:
    """Convert the content of ELMoForManyLangs' files to weights, with notes for the user.

    Args:
        arrays: {name of a parameter: array}, with names such as "encoder.forward_layer_0.state_linearity.bias".
        words, symbols: word or symbol of each row of the embedding matrix; empty if there is no such matrix.
    """
    rows, alphabet = _alphabet(symbols)
    config, notes = _config_of(options, words=len(words), characters=len(alphabet))
    layout = Layout(_PLACES, config, DIRECTIONS)
    shapes = layout.shapes
    if symbols:
        shapes = shapes | {_CHARACTERS: (len(symbols), config.char_dim)}
    check_arrays(arrays, shapes)
    theirs = {name: torch.from_numpy(array) for name, array in arrays.items()}
    if symbols:
        theirs[_CHARACTERS] = theirs[_CHARACTERS][rows]
    tensors = {name: tensor.float() for name, tensor in layout.to_ours(theirs).items()}
    if unused := len(symbols) - len(rows):
        notes.append(
            f"char.dic: left out {unused} symbols of several characters, because no word contains them"
        )
    return Weights(config, tensors, words, alphabet=alphabet), notes


def _alphabet(symbols: list[str]) -> tuple[list[int], str]:
    """Return the row in ELMoForManyLangs' character embedding matrix of each row of ours (first the special symbols,
    then the single characters), and the single characters as one string."""
    row = {symbol: number for number, symbol in enumerate(symbols)}
    characters = [symbol for symbol in symbols if len(symbol) == 1]
    return [row[s] for s in [*_MARKS, *characters]] if symbols else [], "".join(characters)


# Options that do not change the output of a trained model. The last three only matter for character input.
_UNUSED = {
    "dropout", "classifier", "classifier.name", "classifier.n_samples", "classifier.corr_dim",
    "token_embedder.activation", "token_embedder.filters", "token_embedder.n_highway",
}  # fmt: skip


def _config_of(
    options: Mapping[str, Any], *, words: int, characters: int
) -> tuple[BiLMConfig, list[str]]:
    """Convert the options of a model with so many words and single characters to a configuration, with notes."""
    reader = OptionsReader(options)
    for part, known in (("token_embedder", "cnn"), ("encoder", "elmo")):
        name = reader.value(f"{part}.name")
        if name is not ... and str(name).lower() != known:
            reader.problems.append(f"{part}.name = {name!r:.60} (must be {known!r})")
    word_dim, char_dim = (reader.value(f"token_embedder.{d}") for d in ("word_dim", "char_dim"))
    if not (word_dim or char_dim):
        reader.problems.append("token_embedder.word_dim and char_dim are both 0")
    fields: dict[str, Any] = {
        "dim": reader.value("encoder.dim"),
        "projection": reader.value("encoder.projection_dim"),
        "layers": reader.value("encoder.n_layers"),
        "cell_clip": reader.clip("encoder.cell_clip"),
        "proj_clip": reader.clip("encoder.proj_clip"),
        "max_characters": reader.value("token_embedder.max_characters_per_token"),
        # ELMoForManyLangs adds nothing to the forget gate, always projects, and always has residual connections.
        "forget_bias": 0.0,
        "square_projections": True,
        "skip": True,
    }
    if word_dim:
        fields |= {"n_words": words, "word_dim": word_dim}
    if char_dim:
        fields |= {
            "n_symbols": N_MARKS + characters,
            "char_dim": char_dim,
            "activation": reader.value("token_embedder.activation"),
            "filters": reader.value("token_embedder.filters"),
            "highways": reader.value("token_embedder.n_highway"),
        }
    if reader.problems:
        raise ValueError("; ".join(reader.problems))
    return BiLMConfig(**fields), reader.notes + reader.ignored(_UNUSED)

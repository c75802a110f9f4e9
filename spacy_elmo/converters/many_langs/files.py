"""Files of an ELMoForManyLangs model: their places in a folder, and their content, unchanged."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np

from ...text.json_object import read_json_object
from ..readers.torch_file import read_state_dict
from .lexicon import read_lexicon

PARTS = ("encoder", "token_embedder")
"""The two parts of a model, each in a file of its own, `encoder.pkl`."""

# The configurations that the program ships (both files have the same content in 0.0.4.post2). Most published models
# name one of them, by its path on a machine of the authors, and do not contain it.
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


@dataclass
class ManyLangsModel:
    """A model of ELMoForManyLangs, unchanged from its files."""

    folder: Path
    options: dict[str, Any]
    """The options of the network."""
    options_name: str
    """The name of their file, or of a configuration that the program ships."""
    arrays: dict[str, np.ndarray]
    """The arrays by their path in the program's model, "encoder.forward_layer_0.state_linearity.bias"."""
    words: list[str] | None
    """The words of the rows of the word table; None: there is no such table."""
    symbols: list[str] | None
    """The symbols of the rows of the character table; None: there is no such table."""
    files: list[Path]
    """The files that were read."""
    notes: list[str] = field(default_factory=list)


def recognize(folder: Path) -> str | None:
    """Return the reason why a folder seems to be a model of ELMoForManyLangs, or None. Never raises."""
    try:
        model = model_folder(folder)
    except OSError:
        return None
    if model is None:
        return None
    return " and ".join(f"{part}.pkl" for part in PARTS if (model / f"{part}.pkl").is_file())


def model_folder(folder: Path) -> Path | None:
    """Return the folder itself or, as in unpacked archives, the only folder inside it with a model, or None."""
    if _has_model(folder):
        return folder
    inside = [path for path in folder.iterdir() if path.is_dir() and _has_model(path)]
    return inside[0] if len(inside) == 1 else None


def _has_model(folder: Path) -> bool:
    return any((folder / f"{part}.pkl").is_file() for part in PARTS)


def read_files(folder: str | Path) -> ManyLangsModel:
    """Read a model's configuration, dictionaries and tensors.

    Args:
        folder: contains `config.json`, `word.dic`, `char.dic`, `token_embedder.pkl` and `encoder.pkl`, or one folder
            with these.

    Raises:
        OSError: a file or the folder is missing or cannot be read.
        ValueError: it contains no model, or more than one; or a file is damaged, or contains more than tensors.
    """
    parent = Path(folder)
    if not parent.is_dir():
        raise NotADirectoryError(
            f"{parent} is not a folder; give the folder of an ELMoForManyLangs model"
        )
    model_dir = model_folder(parent)
    if model_dir is None:
        raise ValueError(
            f"{parent}: not one ELMoForManyLangs model: expected {PARTS[0]}.pkl and {PARTS[1]}.pkl, in it or in exactly"
            " one of the folders in it"
        )
    options, options_file, name = _network(model_dir)
    model = ManyLangsModel(model_dir, options, name, {}, None, None, [model_dir / "config.json"])
    if options_file is not None:
        model.files.append(options_file)
    # A character model has a word.dic too, of the words that its training predicted.
    if options["token_embedder"].get("word_dim"):
        model.files.append(model_dir / "word.dic")
        model.words = read_lexicon(model.files[-1])
    if options["token_embedder"].get("char_dim"):
        model.files.append(model_dir / "char.dic")
        model.symbols = read_lexicon(model.files[-1])
    for part in PARTS:
        model.files.append(model_dir / f"{part}.pkl")
        for tensor_name, tensor in read_state_dict(model.files[-1]).items():
            model.arrays[f"{part}.{tensor_name}"] = tensor.numpy()
    if (model_dir / "classifier.pkl").exists():
        model.notes.append("classifier.pkl, the softmax of the training, is left out")
    return model


def _network(folder: Path) -> tuple[dict[str, Any], Path | None, str]:
    """Return the options of the network, their file, and its name.

    ELMoForManyLangs follows `config_path` to any place; here nothing outside the folder is read.
    """
    config_file = folder / "config.json"
    config_path = read_json_object(config_file).get("config_path")
    if not isinstance(config_path, str):
        raise ValueError(f'{config_file}: no "config_path", the name of the network configuration')
    path = PureWindowsPath(config_path)  # splits at both kinds of slash
    inside = not path.anchor and ".." not in path.parts
    for candidate in ([folder.joinpath(*path.parts)] if inside else []) + [folder / path.name]:
        if candidate.is_file():
            options = read_json_object(candidate)
            if all(isinstance(options.get(part), dict) for part in PARTS):
                return options, candidate, candidate.name
            raise ValueError(f"{candidate}: expected the sections {' and '.join(PARTS)}")
    if path.name in _SHIPPED:
        return _SHIPPED_OPTIONS, None, f"{path.name} as ELMoForManyLangs ships it"
    raise FileNotFoundError(
        f"{config_file} names the network configuration {config_path!r}: {folder} contains no {path.name!r}, and"
        f" ELMoForManyLangs ships only {', '.join(_SHIPPED)}. Put the file into the folder"
    )

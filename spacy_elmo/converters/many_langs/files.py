"""Reader of the files of an ELMoForManyLangs model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np

from ...text.json_object import read_json_object
from ..readers.torch_file import read_state_dict
from .lexicon import read_lexicon

PARTS = ("encoder", "token_embedder")
"""Names of the two parts of a model. Each part is a file, such as `encoder.pkl`."""

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


@dataclass
class ManyLangsModel:
    """The content of the files of an ELMoForManyLangs model, unchanged."""

    folder: Path
    options: dict[str, Any]
    """The options of the network."""
    options_name: str
    """Name of the options file, or of a configuration that is part of ELMoForManyLangs."""
    arrays: dict[str, np.ndarray]
    """{name of a parameter: array}, with names such as "encoder.forward_layer_0.state_linearity.bias"."""
    words: list[str] | None
    """Word of each row of the word embedding matrix; None if there is no such matrix."""
    symbols: list[str] | None
    """Symbol of each row of the character embedding matrix; None if there is no such matrix."""
    files: list[Path]
    """The files that were read."""
    notes: list[str] = field(default_factory=list)


def recognize(folder: Path) -> str | None:
    """Return the reason why a folder seems to be an ELMoForManyLangs model, or None. Raise no error."""
    try:
        model = model_folder(folder)
    except OSError:
        return None
    if model is None:
        return None
    return " and ".join(f"{part}.pkl" for part in PARTS if (model / f"{part}.pkl").is_file())


def model_folder(folder: Path) -> Path | None:
    """Find a model in a folder or in one of its subfolders, because unpacked archives often have a subfolder.

    Returns:
        The folder with the files of the model. None if there is no model, or if several subfolders contain
        models.
    """
    if _has_model(folder):
        return folder
    inside = [path for path in folder.iterdir() if path.is_dir() and _has_model(path)]
    return inside[0] if len(inside) == 1 else None


def _has_model(folder: Path) -> bool:
    return any((folder / f"{part}.pkl").is_file() for part in PARTS)


def read_files(folder: str | Path) -> ManyLangsModel:
    """Read the configuration, the dictionaries and the tensors of an ELMoForManyLangs model.

    Args:
        folder: folder with `config.json`, `word.dic`, `char.dic`, `token_embedder.pkl` and `encoder.pkl`.
            These files can also be in a subfolder.

    Raises:
        OSError: the folder or a file is missing or cannot be read.
        ValueError: the folder contains no model or several models, a file is damaged, or a .pkl file contains
            anything besides tensors.
    """
    parent = Path(folder)
    if not parent.is_dir():
        raise NotADirectoryError(
            f"{parent} is not a folder. Give the folder of an ELMoForManyLangs model"
        )
    model_dir = model_folder(parent)
    if model_dir is None:
        raise ValueError(
            f"{parent} does not contain exactly one ELMoForManyLangs model. Expected {PARTS[0]}.pkl and {PARTS[1]}.pkl,"
            " in the folder itself or in one of its subfolders"
        )
    options, options_file, name = _network(model_dir)
    model = ManyLangsModel(model_dir, options, name, {}, None, None, [model_dir / "config.json"])
    if options_file is not None:
        model.files.append(options_file)
    # A character model also has a word.dic: the words that it predicted in training. It is not needed.
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
        model.notes.append("left out classifier.pkl, the softmax of the training")
    return model


def _network(folder: Path) -> tuple[dict[str, Any], Path | None, str]:
    """Read the network configuration that the entry `config_path` of `config.json` names.

    Unlike ELMoForManyLangs, this function reads no file outside the folder.

    Returns:
        The options, the path of the options file, and the name of the configuration for messages. The path is
        None if `config_path` names a configuration that is part of ELMoForManyLangs.
    """
    config_file = folder / "config.json"
    config_path = read_json_object(config_file).get("config_path")
    if not isinstance(config_path, str):
        raise ValueError(
            f'{config_file} has no "config_path", which should name the network configuration'
        )
    path = PureWindowsPath(config_path)  # splits at both kinds of slash
    inside = not path.anchor and ".." not in path.parts
    for candidate in ([folder.joinpath(*path.parts)] if inside else []) + [folder / path.name]:
        if candidate.is_file():
            options = read_json_object(candidate)
            if all(isinstance(options.get(part), dict) for part in PARTS):
                return options, candidate, candidate.name
            raise ValueError(f"{candidate} must have the sections {' and '.join(PARTS)}")
    if path.name in _SHIPPED:
        return _SHIPPED_OPTIONS, None, f"{path.name}, as shipped with ELMoForManyLangs"
    raise FileNotFoundError(
        f"{config_file} names the network configuration {config_path!r}, but {folder} contains no {path.name!r}."
        f" ELMoForManyLangs itself ships only {', '.join(_SHIPPED)}. Put the missing file into the folder"
    )

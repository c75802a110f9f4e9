"""The files of an ELMoForManyLangs model on disk: where they are, and what is in them, unchanged."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import torch

from ..readers.json_file import read_object
from ..readers.torch_file import read_state_dict
from .lexicon import read_lexicon

PARTS = ("encoder", "token_embedder")
"""The two halves of a model, each in a file of its own, `encoder.pkl`."""

# The configurations that come with the program (both names stand for the same numbers in 0.0.4.post2). Most published
# models name one of them, by its path on a machine of the authors, and do not contain it.
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
    """A model as its files hold it."""

    folder: Path
    options: dict[str, Any]
    """Of the network."""
    options_name: str
    """The file that they are from, or the name of a configuration that the program ships."""
    arrays: dict[str, np.ndarray]
    """By the path in the program's model, "encoder.forward_layer_0.state_linearity.bias"."""
    words: list[str] | None
    """Those of the rows of the word table; None: there is no such table."""
    symbols: list[str] | None
    """Likewise of the table of characters."""
    files: list[Path]
    """Those that were read."""
    notes: list[str] = field(default_factory=list)


def model_folder(folder: Path) -> Path | None:
    """The folder itself or, as in unpacked archives, the only one inside it that holds a model; None: there is none."""
    if _holds_model(folder):
        return folder
    inside = [path for path in folder.iterdir() if path.is_dir() and _holds_model(path)]
    return inside[0] if len(inside) == 1 else None


def _holds_model(folder: Path) -> bool:
    return any((folder / f"{part}.pkl").is_file() for part in PARTS)


def read_files(folder: str | Path) -> ManyLangsModel:
    """Read a model's configuration, dictionaries and tensors.

    Args:
        folder: holds `config.json`, `word.dic`, `char.dic`, `token_embedder.pkl` and `encoder.pkl`, or one folder
            with these.

    Raises:
        OSError: a file or the folder is missing or cannot be read.
        ValueError: there is no model in it, or more than one; or a file is damaged, or holds more than tensors.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{folder} is not a folder; give that of an ELMoForManyLangs model"
        )
    found = model_folder(folder)
    if found is None:
        raise ValueError(
            f"{folder}: not one ELMoForManyLangs model: expected {PARTS[0]}.pkl and {PARTS[1]}.pkl, in it or in just"
            " one of the folders in it"
        )
    options, options_file, name = _network(found)
    model = ManyLangsModel(found, options, name, {}, None, None, [found / "config.json"])
    if options_file is not None:
        model.files.append(options_file)
    # A character model has a word.dic too, of the words that its training predicted.
    if options["token_embedder"].get("word_dim"):
        model.files.append(found / "word.dic")
        model.words = read_lexicon(model.files[-1])
    if options["token_embedder"].get("char_dim"):
        model.files.append(found / "char.dic")
        model.symbols = read_lexicon(model.files[-1])
    for part in PARTS:
        model.files.append(found / f"{part}.pkl")
        for tensor_name, tensor in read_state_dict(model.files[-1]).items():
            # numpy knows no bfloat16; every number of it is one of float32.
            known = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
            model.arrays[f"{part}.{tensor_name}"] = known.numpy()
    if (found / "classifier.pkl").exists():
        model.notes.append("classifier.pkl, the softmax of the training, is left out")
    return model


def _network(folder: Path) -> tuple[dict[str, Any], Path | None, str]:
    """The options of the network, the file that they are from, and its name.

    Its program follows `config_path` first, wherever that leads; here nothing outside the folder counts.
    """
    config_file = folder / "config.json"
    given = read_object(config_file).get("config_path")
    if not isinstance(given, str):
        raise ValueError(f'{config_file}: no "config_path", the name of the network configuration')
    path = PureWindowsPath(given)  # which splits at both kinds of slash
    inside = not path.anchor and ".." not in path.parts
    for candidate in ([folder.joinpath(*path.parts)] if inside else []) + [folder / path.name]:
        if candidate.is_file():
            options = read_object(candidate)
            if all(isinstance(options.get(part), dict) for part in PARTS):
                return options, candidate, candidate.name
            raise ValueError(f"{candidate}: expected the sections {' and '.join(PARTS)}")
    if path.name in _SHIPPED:
        return _SHIPPED_OPTIONS, None, f"{path.name} as ELMoForManyLangs ships it"
    raise FileNotFoundError(
        f"{config_file} names the network configuration {given!r}: there is no {path.name!r} in {folder}, and it is"
        f" none that ELMoForManyLangs ships ({', '.join(_SHIPPED)}). Put it there"
    )

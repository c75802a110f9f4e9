"""Our weights to bilm-tf's and AllenNLP's files: options.json and HDF5 arrays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.weights import Weights

from .bilm_files import load_h5py
from .bilm_hdf5 import to_arrays


def export(weights: Weights, folder: str | Path) -> list[Path]:
    """Write a model as its original programs read it.

    Args:
        folder: is made if need be; receives `options.json` and `weights.hdf5`, `vocab.txt` if the file has a
            vocabulary, and `softmax_weights.hdf5` if it has a head. Files that stand there are replaced.

    Returns:
        The files written.

    Raises:
        OSError: the folder is not writable.
        ValueError: h5py is missing.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = {folder / "weights.hdf5": to_arrays(weights)}
    if (head := weights.head()) is not None:
        rows, bias = head.weight.detach().numpy(), head.bias.detach().numpy()[:, 0]
        written[folder / "softmax_weights.hdf5"] = {"softmax/W": rows, "softmax/b": bias}
    for path, arrays in written.items():
        _write(path, arrays)
    options = folder / "options.json"
    options.write_text(json.dumps(options_of(weights.config), indent=2) + "\n", "utf8")
    files = [options, *written]
    if weights.vocabulary:
        files.append(folder / "vocab.txt")
        files[-1].write_text("".join(f"{word}\n" for word in weights.vocabulary), "utf8")
    return files


def options_of(config: BiLMConfig) -> dict[str, Any]:
    """options.json for serving (which is why it says 262 characters: 261, and one that pads)."""
    lstm = {
        "dim": config.dim,
        "projection_dim": config.projection,
        "n_layers": config.layers,
        "cell_clip": config.cell_clip,
        "proj_clip": config.proj_clip,
        "use_skip_connections": config.skip,
    }
    if config.words:
        return {"lstm": lstm, "n_tokens_vocab": config.words}
    characters = {
        "activation": config.activation,
        "embedding": {"dim": config.char_dim},
        "filters": [list(group) for group in config.filters],
        "max_characters_per_token": config.max_characters,
        "n_characters": 262,
        "n_highway": config.highways,
    }
    return {"lstm": lstm, "char_cnn": characters}


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        with load_h5py().File(partial, "w") as file:
            for name, array in arrays.items():
                file[name] = array
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)

"""Export of a biLM to the format of bilm-tf and AllenNLP: options.json and HDF5 arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import srsly

from ...bilm.config import BiLMConfig
from ...bilm.weights import Weights
from ...files import all_or_nothing
from ...output_file import OutputFile
from ..readers.hdf5 import load_h5py
from .files import SOFTMAX_BIAS, SOFTMAX_WEIGHT
from .hdf5_conversion import to_arrays

FILES = _OPTIONS, _WEIGHTS, _SOFTMAX, _VOCABULARY = (
    "options.json", "weights.hdf5", "softmax_weights.hdf5", "vocab.txt"
)  # fmt: skip


def export(weights: Weights, folder: str | Path, *, force: bool = False) -> list[Path]:
    """Write a biLM in the HDF5 format of bilm-tf and AllenNLP.

    Args:
        folder: folder to write `options.json` and `weights.hdf5` to. If the weights have a vocabulary, the
            function also writes `vocab.txt`. If the weights have a softmax head, the function also writes
            `softmax_weights.hdf5`.
        force: replace existing files.

    Returns:
        The paths of the written files.

    Raises:
        OSError: a file exists and `force` is false, or the folder cannot be written.
        ValueError: h5py is missing, or bilm-tf does not support this biLM. The message names each reason.
    """
    if problems := _inexpressible(weights):
        raise ValueError("bilm-tf does not support this biLM:\n  " + "\n  ".join(problems))
    with all_or_nothing(folder, FILES, force=force) as new:
        srsly.write_json(new / _OPTIONS, options_of(weights.config))
        _write(new / _WEIGHTS, to_arrays(weights))
        if (head := weights.build_head()) is not None:
            rows, bias = head.weight.detach().numpy(), head.bias.detach().numpy()[:, 0]
            _write(new / _SOFTMAX, {SOFTMAX_WEIGHT: rows, SOFTMAX_BIAS: bias})
        if weights.vocabulary:
            words = "".join(f"{word}\n" for word in weights.vocabulary)
            (new / _VOCABULARY).write_text(words, "utf8", newline="\n")
        return [Path(folder) / name for name in FILES if (new / name).exists()]


def options_of(config: BiLMConfig) -> dict[str, Any]:
    """Return the content of options.json for inference. `n_characters` is 262, because bilm-tf has 261
    character ids, and one more for padding in inference."""
    lstm = {
        "dim": config.dim,
        "projection_dim": config.projection,
        "n_layers": config.layers,
        "cell_clip": config.cell_clip,
        "proj_clip": config.proj_clip,
        "use_skip_connections": config.skip,
    }
    if config.n_words:
        return {"lstm": lstm, "n_tokens_vocab": config.n_words}
    characters = {
        "activation": config.activation,
        "embedding": {"dim": config.char_dim},
        "filters": [list(group) for group in config.filters],
        "max_characters_per_token": config.max_characters,
        "n_characters": 262,
        "n_highway": config.highways,
    }
    return {"lstm": lstm, "char_cnn": characters}


def _inexpressible(weights: Weights) -> list[str]:
    config, problems = weights.config, []
    if config.has_lexicon:
        problems.append(
            "the input is words or code points, as in ELMoForManyLangs; bilm-tf's input is words or bytes"
        )
    if config.spelling:
        problems.append(
            "this biLM changes the spelling of words (unicode_form, replace); bilm-tf does not"
        )
    same = {config.dim} if config.n_words else {config.dim, config.n_filters}
    if config.square_projections and config.projection in same:
        problems.append(
            "this biLM has a projection between equal sizes; bilm-tf never has one there"
        )
    if broken := [w for w in weights.vocabulary if w != w.strip() or len(w.splitlines()) > 1]:
        problems.append(
            "words of the vocabulary contain line breaks or start or end with a space, which a vocabulary file cannot"
            f" express: {broken[:10]}"
        )
    return problems


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with OutputFile(path, "w+b") as raw, load_h5py().File(raw, "w") as file:
        for name, array in arrays.items():
            file[name] = array
        file.close()
        raw.raise_error()

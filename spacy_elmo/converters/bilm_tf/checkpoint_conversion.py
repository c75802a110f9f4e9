"""Conversion of the checkpoint of a bilm-tf training run: options.json and TensorFlow's files.

The checkpoint contains the same arrays as an HDF5 file of bilm-tf's `dump_weights`, but with other names. The
checkpoint also contains the softmax, which becomes our softmax head, so that you can continue the training.
The state of the optimizer is not read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import torch

from ..readers.tensorflow import INDEX, Checkpoint, V1Error, is_v1, newest
from ..result import Conversion
from .files import (
    SOFTMAX,
    SOFTMAX_BIAS,
    SOFTMAX_WEIGHT,
    TABLE,
    ForeignModel,
    read_options,
    read_vocabulary,
    vocabulary_of,
)
from .hdf5_conversion import to_weights

_SCOPE = "lm/"
# Parts of TensorFlow's names, and what `dump_weights` replaces them by (bilm-tf `training.py`), in this order.
_DUMPED = {
    "/rnn/": "/RNN/",
    "/multi_rnn_cell/cell_": "/MultiRNNCell/Cell",
    "/lstm_cell/projection/kernel": "/LSTMCell/W_P_0",
    "/lstm_cell/kernel": "/LSTMCell/W_0",
    "/lstm_cell/bias": "/LSTMCell/B",
}


def convert(
    folder: str | Path,
    *,
    options: str | Path | None = None,
    vocabulary: str | Path | None = None,
    dtype: torch.dtype = torch.float32,
) -> Conversion:
    """Read a checkpoint of bilm-tf and convert it.

    Args:
        folder: the folder `save_dir` of bilm-tf, in which the newest checkpoint is converted; or the `.index`
            file of a checkpoint.
        options: the options file; None: `options.json` in the folder.
        vocabulary: file with the vocabulary of the training, one word per line. None: the only text file in
            the folder with as many words as the softmax has rows. If there is no such file or there are
            several, the result has no softmax head.
        dtype: float32 keeps every bit; float16 halves the size of the file.

    Raises:
        OSError: a file is missing or cannot be read.
        ValueError: a file is damaged, has another format, or does not fit the other files.
    """
    folder, prefix = _locate(Path(folder))
    options_file = Path(options) if options is not None else folder / "options.json"
    if not options_file.exists():
        raise FileNotFoundError(
            f"The options file {options_file} is missing. bilm-tf writes it together with its checkpoints. Give the"
            " file with options (`--options`)"
        )
    checkpoint = Checkpoint(prefix)
    names = _variables(checkpoint)
    arrays = {
        dumped: checkpoint.read(name) for dumped, name in names.items() if dumped not in SOFTMAX
    }
    model = ForeignModel(options_file, read_options(options_file), checkpoint.index, arrays)
    note = _add_head(model, checkpoint, names, Path(vocabulary) if vocabulary is not None else None)
    result = to_weights(model, dtype=dtype)
    words_file = [model.vocabulary_file] if model.vocabulary_file is not None else []
    return Conversion(
        result.weights,
        [options_file, *checkpoint.files, *words_file],
        [f"checkpoint {prefix.name}", note, *result.notes],
    )


def recognize(folder: str | Path) -> str | None:
    """Return the reason why a folder or file seems to be a bilm-tf checkpoint, or None. Raise no error."""
    try:
        _, prefix = _locate(Path(folder))
        variables = _variables(Checkpoint(prefix))
    except V1Error:
        return "it is a TensorFlow checkpoint of the old format V1"
    except (OSError, ValueError):
        return None
    return f"{prefix.name}{INDEX} is a TensorFlow checkpoint with {len(variables)} variables under {_SCOPE}"


def _locate(path: Path) -> tuple[Path, Path]:
    """Return the folder of a checkpoint, and the path of its files without their endings. `path` is the
    folder, or the `.index` file."""
    if path.name.endswith(INDEX) and path.is_file():
        return path.parent, path.with_name(path.name.removesuffix(INDEX))
    if is_v1(path):
        raise V1Error(path)
    if not path.is_dir():
        raise NotADirectoryError(
            f"{path} is not a TensorFlow checkpoint. Give its folder or its file *{INDEX}"
        )
    return path, newest(path)


def _variables(checkpoint: Checkpoint) -> dict[str, str]:
    """Return the names of the biLM's variables, as {name in an HDF5 file: name in the checkpoint}.

    Raises:
        ValueError: the checkpoint has no variables of a biLM.
    """
    variables = {}
    for name in checkpoint.entries:
        # The name of an optimizer's slot starts with the name of its variable: lm/char_embed/Adagrad.
        parts = name.split("/")
        is_slot = any("/".join(parts[:n]) in checkpoint.entries for n in range(1, len(parts)))
        if name.startswith(_SCOPE) and not is_slot:
            variables[_dumped(name)] = name
    if not variables:
        some = ", ".join(list(checkpoint.entries)[:5]) or "none at all"
        raise ValueError(
            f"{checkpoint.index} is not a checkpoint of bilm-tf: no variable name starts with {_SCOPE}. Its first"
            f" variables are {some}"
        )
    return variables


def _dumped(name: str) -> str:
    name = name.removeprefix(_SCOPE)
    for theirs, dumped in _DUMPED.items():
        name = name.replace(theirs, dumped)
    return name


def _add_head(
    model: ForeignModel, checkpoint: Checkpoint, names: Mapping[str, str], vocabulary: Path | None
) -> str:
    """If there is a vocabulary file (the file `vocabulary`, or a file in the folder of the checkpoint), add
    the words and the softmax to `model`. Return a note for the user. `names` is the result of
    `_variables`."""
    if SOFTMAX_BIAS not in names:
        raise ValueError(
            f"{checkpoint.index} has no variable {_SCOPE}{SOFTMAX_BIAS}, the bias of the softmax"
        )
    rows = math.prod(checkpoint.entries[names[SOFTMAX_BIAS]].shape)
    path = vocabulary or vocabulary_of(rows, checkpoint.prefix.parent)
    if path is None:
        return f"no head: the softmax needs the vocabulary of the training, {rows:,} words (`--vocabulary`)"
    words = read_vocabulary(path)
    if len(words) != rows:
        raise ValueError(
            f"{path} has {len(words):,} words, but the softmax has {rows:,} rows. Give the vocabulary of the training"
        )
    model.vocabulary_file, model.vocabulary = path, words
    # With `share_embedding_softmax`, the weight of the softmax is the word table.
    sources = {
        SOFTMAX_WEIGHT: names.get(SOFTMAX_WEIGHT, names.get(TABLE)),
        SOFTMAX_BIAS: names[SOFTMAX_BIAS],
    }
    model.softmax_file = checkpoint.index
    model.softmax = {
        ours: checkpoint.read(name) for ours, name in sources.items() if name is not None
    }
    return f"head: softmax over the {rows:,} words of {path.name}"

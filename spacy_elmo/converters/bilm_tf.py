"""Models of bilm-tf: HDF5 files, which AllenNLP reads too (in and out), and TensorFlow's checkpoints (in).

The conversion does not change any number. `BiLM` and TensorFlow have the same order of the LSTM gates (input,
candidate, forget, output), and both compute `x @ weight`. TensorFlow adds 1 to the forget gate at run time.
The bias in the file does not include this 1, so the configuration sets `forget_bias` to 1.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import srsly
import torch

from ..bilm.config import BiLMConfig
from ..bilm.spelling import BOS, EOS, UNK
from ..bilm.weights import Weights
from ..files import all_or_nothing, read_json_object
from .layout import Layout, Place, Turn
from .options import OptionsReader
from .strict_check import check_arrays
from .untrusted_files import MAX_DEPTH, MAX_MEMBERS, one_error

_CELL = "RNN_{d}/RNN/MultiRNNCell/Cell{i}/LSTMCell/"
_DIRECTIONS = ("0", "1")
_ONE_CELL = "RNN_{d}/RNN/LSTMCell/"
_TABLE = "embedding"
_SOFTMAX = _SOFTMAX_WEIGHT, _SOFTMAX_BIAS = "softmax/W", "softmax/b"
# A 2-d convolution over an image of height 1.
_IMAGE = Turn(lambda x: x[0], lambda x: x[None])
_PLACES = {
    "encoder.characters": Place("char_embed"),
    "encoder.filters.{i}": Place("CNN/W_cnn_{i}", _IMAGE),
    "encoder.filter_biases.{i}": Place("CNN/b_cnn_{i}"),
    "encoder.highways.{i}.carry.weight": Place("CNN_high_{i}/W_carry"),
    "encoder.highways.{i}.carry.bias": Place("CNN_high_{i}/b_carry"),
    "encoder.highways.{i}.transform.weight": Place("CNN_high_{i}/W_transform"),
    "encoder.highways.{i}.transform.bias": Place("CNN_high_{i}/b_transform"),
    "encoder.projection.weight": Place("CNN_proj/W_proj"),
    "encoder.projection.bias": Place("CNN_proj/b_proj"),
    "encoder.words": Place(_TABLE),
    "lstm.{i}.input": Place(_CELL + "W_0"),
    "lstm.{i}.recurrent": Place(_CELL + "W_0"),
    "lstm.{i}.bias": Place(_CELL + "B"),
    "lstm.{i}.projection": Place(_CELL + "W_P_0"),
}
# Parts of the names in a checkpoint, and what bilm-tf's `dump_weights` replaces them by, in this order.
_SCOPE = "lm/"
_DUMPED = {
    "/rnn/": "/RNN/",
    "/multi_rnn_cell/cell_": "/MultiRNNCell/Cell",
    "/lstm_cell/projection/kernel": "/LSTMCell/W_P_0",
    "/lstm_cell/kernel": "/LSTMCell/W_0",
    "/lstm_cell/bias": "/LSTMCell/B",
}


# Files in


def convert_hdf5(
    source: Path,
    *,
    options: Path | None = None,
    vocabulary: Path | None = None,
    softmax: Path | None = None,
    token_vectors: Path | None = None,
) -> tuple[Weights, list[str]]:
    """Convert a bilm-tf model in HDF5 files.

    Args:
        source: folder of the model, or the weights file in this folder. In a folder, the weights are the only
            HDF5 file that contains `RNN_0`.
        options: options file; None: the only file in the folder whose name ends in `options.json`.
        vocabulary: text file with a word per line, which a word table and a softmax need.
        softmax: HDF5 file with the softmax; None: none.
        token_vectors: HDF5 file of bilm-tf's `dump_token_embeddings`, with a vector for each word of the
            vocabulary. The vectors replace the token encoder, as in bilm-tf's `TokenBatcher`.

    Returns:
        The weights, and notes for the user.
    """
    folder, weights_file = source.parent, source
    if not source.is_file():
        folder = source
        files = [path for path in folder.iterdir() if path.suffix.lower() in _HDF5]
        files = [path for path in files if len(files) == 1 or _has_rnn(path)]
        advice = "Give this file, not its folder"
        weights_file = only(files, folder, "HDF5 file that contains RNN_0", advice)
    options_file = options or find_options(folder)
    content, arrays = read_options(options_file), _read_hdf5(weights_file)
    files, notes = [options_file, weights_file], []
    if token_vectors is not None:
        arrays = {name: array for name, array in arrays.items() if name.startswith("RNN_")}
        arrays |= _read_hdf5(token_vectors, [_TABLE])
        content = {name: value for name, value in content.items() if name != "char_cnn"}
        content["n_tokens_vocab"] = _rows(arrays[_TABLE])
        files.append(token_vectors)
        notes.append("the token vectors replace the token encoder")
    head = {}
    if softmax is not None:
        head = _read_hdf5(softmax, _SOFTMAX)
        files.append(softmax)
    weights, more = _converted(files, content, arrays, head, vocabulary)
    return weights, notes + more


def convert_checkpoint(
    source: Path, *, options: Path | None = None, vocabulary: Path | None = None
) -> tuple[Weights, list[str]]:
    """Convert the checkpoint of a bilm-tf training run, with TensorFlow. The softmax becomes the softmax head,
    so that `pretrain` can continue the training. The state of the optimizer is not read.

    Args:
        source: folder `save_dir` of bilm-tf, for its newest checkpoint, or the `.index` file of a checkpoint.
        options, vocabulary: see `convert_hdf5`. Without a vocabulary, the softmax is left out.

    Returns:
        The weights, and notes for the user.
    """
    folder = source.parent if source.is_file() else source
    prefix = _newest(source) if folder == source else Path(str(source).removesuffix(".index"))
    options_file = options or find_options(folder)
    arrays = _read_checkpoint(prefix)
    head = {name: arrays.pop(name) for name in _SOFTMAX if name in arrays}
    if _SOFTMAX_WEIGHT not in head and _TABLE in arrays:
        head[_SOFTMAX_WEIGHT] = arrays[_TABLE].copy()  # bilm-tf's option share_embedding_softmax
    notes = []
    if head and vocabulary is None:
        head = {}
        notes.append("left out the softmax: give its words with vocabulary (`--vocabulary`)")
    content = read_options(options_file)
    weights, more = _converted([options_file, prefix], content, arrays, head, vocabulary)
    return weights, notes + more


def find_options(folder: Path) -> Path:
    """Return the only file in a folder whose name ends in `options.json`."""
    files = folder.glob("*options.json")
    return only(files, folder, "*options.json", "Give the file with options (`--options`)")


def only(files: Iterable[Path], folder: Path, content: str, advice: str) -> Path:
    """Return the only one of some files of a folder, or raise an error with their names."""
    files = sorted(files)
    if len(files) == 1:
        return files[0]
    names = ", ".join(path.name for path in files) or "none"
    raise ValueError(f"{folder}: expected one {content}, but found {names}. {advice}")


def read_options(path: Path) -> dict[str, Any]:
    """Return the content of options.json."""
    content = read_json_object(path)
    if not isinstance(content.get("lstm"), dict):
        raise ValueError(f'{path} does not contain the options of a biLM: it has no section "lstm"')
    return content


def _converted(
    files: list[Path],
    options: Mapping[str, Any],
    arrays: dict[str, np.ndarray],
    head: dict[str, np.ndarray],
    vocabulary: Path | None,
) -> tuple[Weights, list[str]]:
    """Convert the content of some files, of which the first two are the options and the weights."""
    words = None
    if vocabulary is not None:
        words = _read_vocabulary(vocabulary)
        files = [*files, vocabulary]
    shown = ", ".join(map(str, files))
    try:
        weights, notes = to_weights(options, arrays, words, head)
    except ValueError as error:
        raise ValueError(f"{shown}: {error}") from error
    weights.card["converted_from"] = f"{files[1].name} and {files[0].name} (bilm-tf)"
    return weights, [f"read {shown}", *notes]


def _read_vocabulary(path: Path) -> list[str]:
    """Return the words of a file. As in bilm-tf's `data.py`, words are stripped and `!!!MAXTERMID` is skipped."""
    with one_error(path, "a UTF-8 text file"), path.open(encoding="utf-8-sig") as file:
        words = [line.strip() for line in file]
    return [word for word in words if word != "!!!MAXTERMID"]


_HDF5 = (".hdf5", ".h5")


def _has_rnn(path: Path) -> bool:
    with _datasets(path) as datasets:
        return any(name.startswith("RNN_0/") for name in datasets)


@contextmanager
def _datasets(path: Path) -> Iterator[dict[str, Any]]:
    """Open an HDF5 file, and yield {path in the file: h5py.Dataset} for all its arrays."""
    datasets: dict[str, Any] = {}
    members = 0

    def keep(name: str | bytes, node: Any) -> None:
        nonlocal members
        # h5py passes bytes if a name is not UTF-8.
        text = name if isinstance(name, str) else name.decode("utf8", "backslashreplace")
        members += 1
        if members > MAX_MEMBERS or text.count("/") >= MAX_DEPTH:  # HDF5 itself has no limit
            raise ValueError(f"more than {MAX_MEMBERS:,} groups, or more than {MAX_DEPTH} levels")
        if getattr(node, "shape", None) is not None:  # an array, not a group or a type
            datasets[text] = node

    import h5py

    with path.open("rb"):
        pass  # a missing or unreadable file raises an OSError with its path
    with one_error(path, "a readable HDF5 file"), h5py.File(path, "r") as file:
        file.visititems(keep)
        yield datasets


def _read_hdf5(path: Path, names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Read the arrays `names`, or all, from an HDF5 file. bilm-tf and AllenNLP write arrays as they are; compressed
    arrays and arrays in chunks are refused, because they could expand to any size."""
    size = path.stat().st_size
    with _datasets(path) as datasets:
        if missing := [name for name in names if name not in datasets]:
            some = ", ".join(list(datasets)[:10])
            raise ValueError(f"{path} has no array {', '.join(missing)}. Its first arrays: {some}")
        arrays = {}
        for name in names or datasets:
            dataset = datasets[name]
            if dataset.chunks or dataset.external or dataset.is_virtual:
                raise ValueError(
                    f"{path}: the array {name} is compressed, in chunks or in another file. Rewrite the file with"
                    " `h5repack -l CONTI -f NONE`"
                )
            size -= dataset.nbytes
            if dataset.dtype.kind not in "fiub" or size < 0:
                raise ValueError(
                    f"{path}: the array {name} of the shape {list(dataset.shape)} and the type {dataset.dtype} cannot"
                    " be in this file"
                )
            arrays[name] = np.asarray(dataset[()])
        return arrays


def _read_checkpoint(prefix: Path) -> dict[str, np.ndarray]:
    """Read the variables of the biLM and of its softmax, as {name in an HDF5 file of bilm-tf: array}."""
    from tensorflow import train

    arrays = {}
    with one_error(prefix, "a checkpoint of TensorFlow"):
        reader = train.load_checkpoint(str(prefix))
        variables = reader.get_variable_to_shape_map()
        for name in variables:
            # The name of an optimizer's slot starts with the name of its variable: lm/char_embed/Adagrad.
            parts = name.split("/")
            is_slot = any("/".join(parts[:n]) in variables for n in range(1, len(parts)))
            if name.startswith(_SCOPE) and not is_slot:
                dumped = name.removeprefix(_SCOPE)
                for theirs, replacement in _DUMPED.items():
                    dumped = dumped.replace(theirs, replacement)
                arrays[dumped] = np.asarray(reader.get_tensor(name))
    return arrays


def _newest(folder: Path) -> Path:
    """Return the path of the newest checkpoint in a folder, without the endings of its files. The file
    `checkpoint` names it, perhaps in a folder of another machine."""
    file = folder / "checkpoint"
    text = file.read_text("utf8", "replace") if file.is_file() else ""
    if named := re.search(r'^model_checkpoint_path: *"(?:.*[/\\])?(.+)"', text, re.MULTILINE):
        return folder / named[1]
    indexes = sorted(folder.glob("*.index"))
    if len(indexes) == 1:
        return indexes[0].with_suffix("")
    names = ", ".join(path.name for path in indexes) or "none"
    raise ValueError(
        f"{folder}: expected one checkpoint (.index), or a file `checkpoint` that names the newest, but found {names}."
        " Give the .index file, not its folder"
    )


# The conversion


def to_weights(
    options: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    words: Sequence[str] | None = None,
    head: Mapping[str, np.ndarray] | None = None,
) -> tuple[Weights, list[str]]:
    """Convert the content of bilm-tf's files to weights, with notes for the user.

    Args:
        arrays: {path in the HDF5 file: array}.
        words: the words in the order of the rows of the word table and of the softmax.
        head: the arrays `softmax/W` (words, projection size) and `softmax/b` (words,); empty: none.
    """
    # TensorFlow leaves out the level of the cells if there is only one layer.
    for d in _DIRECTIONS:
        one, cell = _ONE_CELL.format(d=d), _CELL.format(d=d, i=0)
        arrays = {name.replace(one, cell): array for name, array in arrays.items()}
    config, notes = config_of(options, _rows(arrays.get(_TABLE)))
    layout = Layout(_PLACES, config, _DIRECTIONS)
    check_arrays(arrays, layout.shapes)
    tensors = layout.to_ours({name: torch.from_numpy(array) for name, array in arrays.items()})
    vocabulary = list(words or []) if config.n_words or head else []
    if config.n_words or head:
        rows = config.n_words or _rows((head or {}).get(_SOFTMAX_BIAS))
        if len(vocabulary) != rows:
            raise ValueError(
                f"the model needs a vocabulary of {rows:,} words, one per line, but has {len(vocabulary):,}. Give the"
                " file with vocabulary (`--vocabulary`)"
            )
        if UNK not in vocabulary and not head:
            # As bilm-tf writes vocabularies for token vectors. Its id of another word is that of padding, a zero row.
            vocabulary.append(UNK)
            config = dataclasses.replace(config, n_words=rows + 1)
            table = tensors["encoder.words"]
            tensors["encoder.words"] = torch.cat([table, torch.zeros_like(table[:1])])
            notes.append(f"the vocabulary has no {UNK}: every other word has a vector of zeros")
        if missing := [word for word in (BOS, EOS, UNK) if word not in vocabulary]:
            raise ValueError(f"the vocabulary does not contain {', '.join(missing)}")
    if head:
        rows = len(vocabulary)
        check_arrays(head, {_SOFTMAX_WEIGHT: (rows, config.projection), _SOFTMAX_BIAS: (rows,)})
        tensors["head.weight"] = torch.from_numpy(head[_SOFTMAX_WEIGHT])
        tensors["head.bias"] = torch.from_numpy(head[_SOFTMAX_BIAS])[:, None]
    tensors = {name: tensor.float() for name, tensor in tensors.items()}
    return Weights(config, tensors, vocabulary), notes


def to_arrays(weights: Weights) -> dict[str, np.ndarray]:
    """Convert weights, without the softmax head, to {bilm-tf's name: float32 array}. The bias of the forget gate gets
    `forget_bias - 1`, because TensorFlow always adds 1."""
    theirs = Layout(_PLACES, weights.config, _DIRECTIONS).to_theirs(weights.tensors)
    arrays = {name: tensor.numpy() for name, tensor in theirs.items()}
    for name, array in arrays.items():
        if name.endswith("LSTMCell/B"):
            _, _, forget, _ = np.split(array, 4)
            forget += weights.config.forget_bias - 1.0
    return arrays


def _rows(array: np.ndarray | None) -> int:
    return len(array) if array is not None and array.ndim else 0


# Options that do not change the output of a trained model. The last two are in the options of the released checkpoint;
# no program uses them.
_TRAINING_ONLY = {
    "all_clip_norm_val", "batch_size", "dropout", "learning_rate", "n_epochs", "n_negative_samples_batch",
    "n_tokens_vocab", "n_train_tokens", "sample_softmax", "share_embedding_softmax", "unroll_steps",
    "char_cnn.projection_after_highway", "char_cnn.reverse",
}  # fmt: skip


def config_of(options: Mapping[str, Any], table_rows: int = 0) -> tuple[BiLMConfig, list[str]]:
    """Convert the content of options.json to a configuration, with notes on missing and ignored options. If the
    options tell no number of words, `table_rows`, the size of the word table, is taken."""
    reader = OptionsReader(options)
    if reader.value("bidirectional", default=True, silent=True) is False:
        reader.problems.append("bidirectional = false: a model of one direction is not a biLM")
    fields: dict[str, Any] = {
        "dim": reader.value("lstm.dim"),
        "projection": reader.value("lstm.projection_dim"),
        "layers": reader.value("lstm.n_layers", default=1),
        "cell_clip": reader.clip("lstm.cell_clip"),
        "proj_clip": reader.clip("lstm.proj_clip"),
        "skip": bool(reader.value("lstm.use_skip_connections", default=False)),
        "forget_bias": 1.0,
    }
    if reader.value("char_cnn", default=None, silent=True):
        count = reader.value("char_cnn.n_characters", default=261)
        if count not in (261, 262):  # 262 counts the padding of inference, which is in no file
            reader.problems.append(f"char_cnn.n_characters = {count} (must be 261 or 262)")
        fields |= {
            "char_dim": reader.value("char_cnn.embedding.dim"),
            "filters": reader.value("char_cnn.filters"),
            "activation": reader.value("char_cnn.activation"),
            "highways": reader.value("char_cnn.n_highway", default=0),
            "max_characters": reader.value("char_cnn.max_characters_per_token", default=50),
        }
    else:
        fields["n_words"] = reader.value("n_tokens_vocab", default=table_rows)
        reader.notes.append("the options have no char_cnn, so the model's input is words")
        if fields["n_words"] == 0:
            reader.problems.append("char_cnn and n_tokens_vocab are both missing")
    if reader.problems:
        raise ValueError("; ".join(reader.problems))
    return BiLMConfig(**fields), reader.notes + reader.ignored(_TRAINING_ONLY | {"lstm"})


# Files out

FILES = _OPTIONS, _WEIGHTS, _SOFTMAX_FILE, _VOCABULARY = (
    "options.json", "weights.hdf5", "softmax_weights.hdf5", "vocab.txt"
)  # fmt: skip


def export(weights: Weights, folder: str | Path, *, force: bool = False) -> list[Path]:
    """Write a biLM in the HDF5 format of bilm-tf and AllenNLP: `options.json`, `weights.hdf5`, `vocab.txt` if the
    weights have a vocabulary, and `softmax_weights.hdf5` if they have a head."""
    if problems := _inexpressible(weights):
        raise ValueError("bilm-tf does not support this biLM:\n  " + "\n  ".join(problems))
    with all_or_nothing(folder, FILES, force=force) as new:
        srsly.write_json(new / _OPTIONS, options_of(weights.config))
        _write_hdf5(new / _WEIGHTS, to_arrays(weights))
        if (head := weights.build_head()) is not None:
            rows, bias = head.weight.detach().numpy(), head.bias.detach().numpy()[:, 0]
            _write_hdf5(new / _SOFTMAX_FILE, {_SOFTMAX_WEIGHT: rows, _SOFTMAX_BIAS: bias})
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
    if config.is_many_langs:
        problems.append("its input is that of ELMoForManyLangs; bilm-tf's is words or bytes")
    if config.spelling:
        problems.append("it changes the spelling of words (unicode_form, replace)")
    same = {config.dim} if config.n_words else {config.dim, config.n_filters}
    if config.square_projections and config.projection in same:
        problems.append("it has a projection between equal sizes; bilm-tf never has one there")
    if broken := [w for w in weights.vocabulary if w != w.strip() or len(w.splitlines()) > 1]:
        problems.append(f"a vocabulary file cannot express the words {broken[:10]}")
    return problems


def _write_hdf5(path: Path, arrays: dict[str, np.ndarray]) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array

"""Reader of bilm-tf models in HDF5 files, the format that AllenNLP also uses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...bilm.words.char_ids import BOS, EOS
from ...text.json_object import read_json_object
from ..readers import hdf5
from ..readers.errors import one_error


@dataclass
class ForeignModel:
    """The content of the files of a bilm-tf model, unchanged."""

    options_file: Path
    options: dict[str, Any]
    weights_file: Path
    arrays: dict[str, np.ndarray]
    """{path in the HDF5 file: array}, with paths such as "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"."""
    vocabulary_file: Path | None = None
    vocabulary: list[str] | None = None
    softmax_file: Path | None = None
    softmax: dict[str, np.ndarray] = field(default_factory=dict)
    """Arrays of the softmax: `softmax/W` (words, projection size) and `softmax/b` (words,), in the order of
    the vocabulary."""
    token_vectors_file: Path | None = None
    token_vectors: np.ndarray | None = None
    """Vectors that replace the token encoder: (words, projection size), in the order of the vocabulary."""
    notes: list[str] = field(default_factory=list)
    """Notes for the user on which files were chosen."""

    @property
    def files(self) -> list[Path]:
        """The files that were read."""
        paths = [
            self.options_file, self.weights_file, self.token_vectors_file, self.softmax_file, self.vocabulary_file
        ]  # fmt: skip
        return [path for path in paths if path is not None]


HDF5, _JSON, _TEXT = (".hdf5", ".h5"), (".json",), (".txt",)
"""Suffixes of file names."""
# Names of the softmax and the word table in the files of bilm-tf.
SOFTMAX = SOFTMAX_WEIGHT, SOFTMAX_BIAS = "softmax/W", "softmax/b"
TABLE = "embedding"


def read_files(
    source: str | Path,
    *,
    options: str | Path | None = None,
    weights: str | Path | None = None,
    vocabulary: str | Path | None = None,
    softmax: str | Path | None = None,
    token_vectors: str | Path | None = None,
) -> ForeignModel:
    """Read a bilm-tf model: the options, the arrays, and the softmax and the vocabulary if they exist.

    The function chooses these files in the folder of the model:

    - weights: the only HDF5 file that contains `RNN_0`;
    - options: the only JSON file that contains `lstm`;
    - softmax, if there is one: the only HDF5 file that contains `softmax/W`;
    - vocabulary of a model with word input: the only text file with the line `<S>`;
    - vocabulary of a softmax: the only text file with one word per row of the softmax.

    Args:
        source: the folder of the model, or the weights file in this folder.
        options, weights, vocabulary, softmax: files to read instead of the files that the function chooses.
        token_vectors: an HDF5 file that bilm-tf's `dump_token_embeddings` has written. The array `embedding`
            in this file contains a vector for each word of the vocabulary.

    Raises:
        OSError: the folder or a file is missing or cannot be read.
        ValueError: a choice is not unique (the message lists the files), a file is damaged, or h5py is
            missing.
    """
    folder = Path(source)
    if folder.is_file():
        folder, weights = folder.parent, weights or folder
    if not folder.is_dir() and (options is None or weights is None):
        raise NotADirectoryError(
            f"{folder} is not a folder. Give the folder with the options and the weights, or both files with"
            " options (`--options`) and weights (`--weights`)"
        )
    hdf5.load_h5py()  # now, or a missing h5py would be reported as "no file contains RNN_0"
    weights_file = _chosen(weights, folder, HDF5, _has_rnn, "RNN_0", "weights")
    options_file = _chosen(options, folder, _JSON, has_lstm, '"lstm"', "options")
    model = ForeignModel(
        options_file, read_options(options_file), weights_file, hdf5.read_arrays(weights_file)
    )
    if token_vectors is not None:
        model.token_vectors_file = Path(token_vectors)
        model.token_vectors = hdf5.read_arrays(model.token_vectors_file, [TABLE])[TABLE]
    # Only a word table or a softmax needs the vocabulary. Other vocabulary files list words for a cache.
    if vocabulary is not None or token_vectors is not None or not model.options.get("char_cnn"):
        path = _chosen(vocabulary, folder, _TEXT, _has_boundary, BOS, "vocabulary")
        model.vocabulary_file, model.vocabulary = path, read_vocabulary(path)
    _read_softmax(model, folder, Path(softmax) if softmax is not None else None)
    if model.vocabulary_file and model.vocabulary:
        model.notes.append(
            f"vocabulary: {model.vocabulary_file.name} ({len(model.vocabulary):,} words)"
        )
    return model


def recognize(source: str | Path) -> str | None:
    """Return the reason why a folder or file seems to be a bilm-tf model in HDF5, or None.

    The function never raises an error.

    Args:
        source: see `read_files`.
    """
    path = Path(source)
    try:
        is_file = path.is_file()
        options, _ = _fitting(_files(path.parent if is_file else path, _JSON), has_lstm)
        weights, _ = _fitting([path] if is_file else _files(path, HDF5), _has_rnn)
    except OSError:  # a folder that may not be read
        return None
    if not options or not weights:
        return None
    return f'{options[0].name} has "lstm", {weights[0].name} has RNN_0'


def vocabulary_of(rows: int, folder: Path) -> Path | None:
    """Find the text file in a folder that has `rows` words, including `<S>` and `</S>`, one per line. Return
    None if there is no such file, or if there are several."""

    def fits(path: Path) -> bool:
        words = read_vocabulary(path)
        return len(words) == rows and {BOS, EOS} <= set(words)

    fitting, _ = _fitting(_files(folder, _TEXT), fits)
    return fitting[0] if len(fitting) == 1 else None


def _read_softmax(model: ForeignModel, folder: Path, requested: Path | None) -> None:
    """Add the softmax and its vocabulary to `model`. A softmax without a vocabulary is ignored, unless the
    user has requested its file. Then a missing vocabulary is an error."""
    path = requested or _only_softmax(model, folder)
    if path is None:
        return
    arrays = hdf5.read_arrays(requested, SOFTMAX) if requested else {}
    rows = math.prod(hdf5.shapes(path)[SOFTMAX_BIAS])
    words_file = model.vocabulary_file or vocabulary_of(rows, folder)
    words = model.vocabulary or (read_vocabulary(words_file) if words_file else [])
    if requested is None and len(words) != rows:
        model.notes.append(
            f"left out the softmax of {path.name}: no text file has its {rows:,} words. Give the file with vocabulary"
            " (`--vocabulary`)"
        )
        return
    if words_file is None:
        raise ValueError(
            f"{path} has {rows:,} rows, but no text file in {folder} has so many words. Give the file with vocabulary"
            " (`--vocabulary`)"
        )
    model.vocabulary_file, model.vocabulary = words_file, words
    model.softmax_file, model.softmax = path, arrays or hdf5.read_arrays(path, SOFTMAX)


def _only_softmax(model: ForeignModel, folder: Path) -> Path | None:
    files, _ = _fitting(_files(folder, HDF5), _has_softmax)
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        model.notes.append(
            f"left out the softmax: there are several, in {names}. Choose one with softmax (`--softmax`)"
        )
    return files[0] if len(files) == 1 else None


def _chosen(
    requested: str | Path | None,
    folder: Path,
    suffixes: Sequence[str],
    fits: Callable[[Path], bool],
    content: str,
    option: str,
) -> Path:
    if requested is not None:
        return Path(requested)
    fitting, failing = _fitting(_files(folder, suffixes), fits)
    if len(fitting) == 1:
        return fitting[0]
    kind = " or ".join(suffixes)
    listing = [(path, "found") for path in fitting] + list(failing.items())
    lines = [
        f"{path.name}: {reason if isinstance(reason, Exception) else f'{content} {reason}'}"
        for path, reason in sorted(listing)
    ] or [f"there is no {kind} file"]
    raise ValueError(
        f"{folder}: expected one {kind} file that contains {content}, but found {len(fitting) or 'none'}. Choose the"
        f" file with {option} (`--{option}`)." + "".join(f"\n  {line}" for line in lines)
    )


def _files(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in suffixes)


def _fitting(
    files: Sequence[Path], fits: Callable[[Path], bool]
) -> tuple[list[Path], dict[Path, Exception | str]]:
    """Return the files for which `fits` returns True, and {other file: reason}. The reason is the error that
    `fits` has raised, or "not found" if `fits` has returned False."""
    fitting: list[Path] = []
    failing: dict[Path, Exception | str] = {}
    for path in files:
        try:
            if fits(path):
                fitting.append(path)
            else:
                failing[path] = "not found"
        except (ValueError, OSError) as error:
            failing[path] = error
    return fitting, failing


def _has_rnn(path: Path) -> bool:
    return any(name.startswith("RNN_0/") for name in hdf5.shapes(path))


def _has_softmax(path: Path) -> bool:
    return set(SOFTMAX) <= hdf5.shapes(path).keys()


def has_lstm(path: Path) -> bool:
    """Return True if a JSON file has a section `lstm`, as the options of a biLM do."""
    return "lstm" in read_json_object(path)


def _has_boundary(path: Path) -> bool:
    return BOS in read_vocabulary(path)


def read_options(path: Path) -> dict[str, Any]:
    """Return the content of options.json.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: the file is not JSON, or has no section `lstm`.
    """
    content = read_json_object(path)
    if not isinstance(content.get("lstm"), dict):
        raise ValueError(f'{path} does not contain the options of a biLM: it has no section "lstm"')
    return content


def read_vocabulary(path: Path) -> list[str]:
    """Return the words of a vocabulary file with one word per line. `!!!MAXTERMID` is left out, as in
    bilm-tf's `data.py`.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: the file is not UTF-8 text.
    """
    with one_error(path, "a UTF-8 text file"), path.open(encoding="utf-8-sig") as file:
        words = [line.strip() for line in file]
    return [word for word in words if word != "!!!MAXTERMID"]

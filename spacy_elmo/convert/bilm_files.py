"""The files of a bilm-tf or AllenNLP model on disk: which they are, and what is in them, unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacy_elmo.bilm.char_ids import BOS


@dataclass
class ForeignModel:
    """A model as its files hold it."""

    options_file: Path
    options: dict[str, Any]
    weights_file: Path
    arrays: dict[str, np.ndarray]
    """By the path inside the HDF5 file, "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"."""
    vocabulary_file: Path | None = None
    vocabulary: list[str] | None = None


def read_files(
    folder: str | Path,
    *,
    options: str | Path | None = None,
    weights: str | Path | None = None,
    vocabulary: str | Path | None = None,
) -> ForeignModel:
    """Read a model's options, arrays and, if it has word input, its vocabulary.

    Args:
        folder: where they lie: the one HDF5 file that contains `RNN_0`, the one JSON file that
            contains `lstm` and, for word input, the one text file that contains the line `<S>`.
        options, weights, vocabulary: the files themselves, where that rule does not find them.

    Raises:
        OSError: a file or the folder is missing or cannot be read.
        ValueError: none or several files fit (lists them), a file is damaged, or h5py is missing.
    """
    folder = Path(folder)
    if not folder.is_dir() and (options is None or weights is None):
        raise NotADirectoryError(
            f"{folder} is not a folder. Give the folder that holds the options and the weights, or both by"
            " --options and --weights."
        )
    load_h5py()  # first, or its absence would read as "no file contains RNN_0"
    weights_file = _chosen(weights, folder, (".hdf5", ".h5"), _has_rnn, "RNN_0", "--weights")
    options_file = _chosen(options, folder, (".json",), _has_lstm, '"lstm"', "--options")
    model = ForeignModel(options_file, _options(options_file), weights_file, _arrays(weights_file))
    # Only a table of words needs their names; the vocabulary beside a character model is that of its softmax.
    if vocabulary is not None or not model.options.get("char_cnn"):
        path = _chosen(vocabulary, folder, (".txt",), _has_boundary, BOS, "--vocabulary")
        model.vocabulary_file, model.vocabulary = path, _vocabulary(path)
    return model


def _chosen(
    given: str | Path | None,
    folder: Path,
    suffixes: Iterable[str],
    fits: Callable[[Path], bool],
    content: str,
    option: str,
) -> Path:
    if given is not None:
        return Path(given)
    candidates = sorted(path for path in folder.iterdir() if path.suffix.lower() in suffixes)
    fitting, listing = [], []
    for path in candidates:
        try:
            fit = fits(path)
            listing.append(f"{path.name}: {content} {'found' if fit else 'not found'}")
            fitting += [path] if fit else []
        except (ValueError, OSError) as error:
            listing.append(f"{path.name}: {error}")
    if len(fitting) == 1:
        return fitting[0]
    kind = " or ".join(suffixes)
    raise ValueError(
        f"{folder}: {len(fitting) or 'no'} {kind} files contain {content}, expected one; choose with {option}."
        + "".join(f"\n  {line}" for line in listing or [f"there is no {kind} file"])
    )


def _has_rnn(path: Path) -> bool:
    with _open(path) as file:
        return "RNN_0" in file


def _has_lstm(path: Path) -> bool:
    content = _json(path)
    return isinstance(content, dict) and "lstm" in content


def _has_boundary(path: Path) -> bool:
    return BOS in _vocabulary(path)


def load_h5py() -> Any:
    """The module, which is only installed with an extra.

    Raises:
        ValueError: it is missing.
    """
    try:
        import h5py
    except ImportError as error:
        raise ValueError("HDF5 files need h5py: pip install spacy-elmo[h5]") from error
    return h5py


def _open(path: Path) -> Any:
    h5py = load_h5py()
    with path.open("rb"):
        pass  # a plain OSError with the path for a missing or unreadable file
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path}: not a readable HDF5 file, or truncated ({error})")


def _arrays(path: Path) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}

    def keep(name: str, node: Any) -> None:
        if hasattr(node, "shape"):  # a dataset; the rest are groups
            arrays[name] = np.asarray(node[()])

    with _open(path) as file:
        try:
            file.visititems(keep)
        except (OSError, RuntimeError, KeyError) as error:
            raise _damaged(path, error) from error
    return arrays


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf8"))
    except ValueError as error:
        raise ValueError(f"{path}: not a JSON file ({error})") from error


def _options(path: Path) -> dict[str, Any]:
    content = _json(path)
    if not isinstance(content, dict) or not isinstance(content.get("lstm"), dict):
        raise ValueError(
            f'{path}: not the options of a biLM: expected an object with a section "lstm"'
        )
    return content


def _vocabulary(path: Path) -> list[str]:
    """One word a line, stripped, without the line `!!!MAXTERMID` (bilm-tf `data.py:Vocabulary`)."""
    try:
        with path.open(encoding="utf8") as file:
            words = [line.strip() for line in file]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a UTF-8 text file ({error})") from error
    return [word for word in words if word != "!!!MAXTERMID"]

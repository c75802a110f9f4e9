"""List of the foreign formats that can be converted, and detection of a model's format."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .allennlp import conversion as allennlp
from .allennlp import files as allennlp_files
from .bilm_tf import checkpoint_conversion as bilm_checkpoint
from .bilm_tf import files as bilm_files
from .bilm_tf import hdf5_conversion as bilm_hdf5
from .many_langs import conversion as many_langs
from .many_langs import files as many_langs_files
from .readers import hdf5
from .result import Conversion


@dataclass(frozen=True)
class Format:
    """A foreign format that can be converted."""

    name: str
    """Name of the format, as in the command `convert FORMAT`."""
    recognize: Callable[[Path], str | None]
    """Function that returns the reason why a folder or file seems to have this format. It returns None for
    all other files, including the files of other formats. It never raises an error."""
    convert: Callable[..., Conversion]
    files: Mapping[str, tuple[str, ...]]
    """Required files, for error messages: {description of a file: glob patterns that its name can match}."""

    @property
    def options(self) -> set[str]:
        """Names of the options of this format, without the options that all formats have."""
        parameters = inspect.signature(self.convert).parameters.values()
        return {each.name for each in parameters if each.kind is each.KEYWORD_ONLY} - {"dtype"}


_OPTIONS = {"options (.json)": ("*options*.json",)}
FORMATS = (
    Format(
        "bilm-hdf5",
        bilm_files.recognize,
        bilm_hdf5.convert,
        _OPTIONS | {"weights with RNN_0 (.hdf5)": ("*.hdf5", "*.h5")},
    ),
    Format(
        "many-langs",
        many_langs_files.recognize,
        many_langs.convert,
        {
            name: (name,)
            for name in ("config.json", "encoder.pkl", "token_embedder.pkl", "char.dic")
        },
    ),
    Format(
        "allennlp",
        allennlp_files.recognize,
        allennlp.convert,
        {"config.json": ("config.json",), "weights.th or best.th": ("weights.th", "best.th")},
    ),
    Format(
        "bilm-tf",
        bilm_checkpoint.recognize,
        bilm_checkpoint.convert,
        _OPTIONS | {"a checkpoint (.index)": ("*.index",)},
    ),
)


def choose(path: Path, name: str) -> tuple[Format, str | None]:
    """Return the foreign format with a name. For the name "auto", detect the format.

    Args:
        path: the folder or file of the model, which is only used for "auto".
        name: name of the format, or "auto".

    Returns:
        The format, and the reason why the format was detected. The reason is None if `name` is not "auto".

    Raises:
        OSError: `name` is "auto", and the path does not exist.
        ValueError: no format has this name, or the model fits no format or several formats.
    """
    if name == "auto":
        return detect(path)
    formats = {format.name: format for format in FORMATS}
    if name not in formats:
        raise ValueError(f"format = {name!r} is unknown. Use auto or one of {', '.join(formats)}")
    return formats[name], None


def detect(path: Path) -> tuple[Format, str]:
    """Detect the foreign format of a model.

    Args:
        path: the folder or file of the model.

    Returns:
        The format, and the reason why the model seems to have this format.

    Raises:
        OSError: the path does not exist.
        ValueError: the model fits no format, or several formats. The message lists the missing files of each
            format, or the formats that fit.
        ValueError: the model fits no format, has HDF5 files, and h5py is missing.
    """
    path.stat()  # raises an OSError with the path if it does not exist
    matches = [(format, reason) for format in FORMATS if (reason := format.recognize(path))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        listing = "".join(f"\n  {format.name}: {reason}" for format, reason in matches)
        raise ValueError(
            f"{path} fits several formats. Choose one of them instead of auto:{listing}"
        )
    if any(file.suffix.lower() in bilm_files.HDF5 for file in [path, *path.glob("*")]):
        hdf5.load_h5py()  # Without h5py, no HDF5 file is recognized.
    if path.is_file():
        raise ValueError(
            f"{path} has no known format. Give the model's folder or archive (.zip, .tar.gz)"
        )
    listing = "".join(f"\n  {format.name}: {_missing_files(format, path)}" for format in FORMATS)
    raise ValueError(f"{path} contains no model of a known format. Files of each format:{listing}")


def _missing_files(format: Format, folder: Path) -> str:
    present, missing = [], []
    for description, patterns in format.files.items():
        files = sorted(file.name for pattern in patterns for file in folder.glob(pattern))
        present += files[:3]
        if not files:
            missing.append(description)
    if missing:
        return f"missing {', '.join(missing)}" + (
            f"; present {', '.join(present)}" if present else ""
        )
    return f"present {', '.join(present)}, but not readable as this format; `convert {format.name}` shows why"

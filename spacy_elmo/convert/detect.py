"""Which format a model's files have, and how one can tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from .allennlp import files as allennlp_files
from .allennlp import trained_model as allennlp
from .bilm_tf import checkpoint as bilm_tf
from .bilm_tf import files as bilm_files
from .bilm_tf import hdf5 as bilm_hdf5
from .conversion import Conversion
from .many_langs import model as many_langs


@dataclass(frozen=True)
class Format:
    """A format that can be converted."""

    name: str
    """That of the command which converts it."""
    recognise: Callable[[Path], str | None]
    """Why a folder or file seems to be of this format, or None."""
    convert: Callable[..., Conversion]
    files: Mapping[str, tuple[str, ...]]
    """What must be there, in words, and the patterns of its names: to say what is missing."""


_OPTIONS = {"options (.json)": ("*options*.json",)}
FORMATS = (
    Format(
        "bilm-hdf5",
        bilm_files.recognise,
        bilm_hdf5.convert,
        _OPTIONS | {"weights with RNN_0 (.hdf5)": ("*.hdf5", "*.h5")},
    ),
    Format(
        "many-langs",
        many_langs.recognise,
        many_langs.convert,
        {
            name: (name,)
            for name in ("config.json", "encoder.pkl", "token_embedder.pkl", "char.dic")
        },
    ),
    Format(
        "allennlp",
        allennlp_files.recognise,
        allennlp.convert,
        {"config.json": ("config.json",), "weights.th or best.th": ("weights.th", "best.th")},
    ),
    Format(
        "bilm-tf",
        bilm_tf.recognise,
        bilm_tf.convert,
        _OPTIONS | {"a checkpoint (.index)": ("*.index",)},
    ),
)


def convert(source: str | Path, *, dtype: torch.dtype = torch.float32) -> Conversion:
    """Convert a model of whatever format; the first note says which it is, and why.

    Args:
        source: as of `detect`.
        dtype: float32 keeps every bit; float16 halves the file.

    Raises:
        OSError: as of `detect`.
        ValueError: as of `detect`; or what the format's own `convert` raises, and which format that is.
    """
    format, reason = detect(Path(source))
    try:
        conversion = format.convert(source, dtype=dtype)
    except (ValueError, OSError) as error:
        # It may name options, which are those of the format's own command.
        raise ValueError(
            f"{error}\n  read as {format.name} ({reason}); for options, convert {format.name}"
        ) from error
    conversion.notes.insert(0, f"{format.name}: {reason}")
    return conversion


def detect(path: Path) -> tuple[Format, str]:
    """The format, and the reason.

    Args:
        path: a folder, or a file that a format's reader takes.

    Raises:
        OSError: there is nothing there.
        ValueError: the files fit no format (says what each still lacks), or several.
    """
    path.stat()  # a plain OSError where there is nothing
    found = [(each, reason) for each in FORMATS if (reason := each.recognise(path))]
    if len(found) == 1:
        return found[0]
    if found:
        listing = "".join(f"\n  {each.name}: {reason}" for each, reason in found)
        raise ValueError(f"{path} fits several formats; name the one to read:{listing}")
    if path.is_file():
        raise ValueError(
            f"{path}: a file of no known format; give the model's folder, .zip or .tar.gz"
        )
    listing = "".join(f"\n  {each.name}: {_lacks(each, path)}" for each in FORMATS)
    raise ValueError(f"{path}: no known format. What is here, and what each would need:{listing}")


def _lacks(format: Format, path: Path) -> str:
    there, missing = [], []
    for what, patterns in format.files.items():
        files = sorted(file.name for pattern in patterns for file in path.glob(pattern))
        there += files[:3]
        if not files:
            missing.append(what)
    if missing:
        return f"missing {', '.join(missing)}" + (f"; there is {', '.join(there)}" if there else "")
    return (
        f"{', '.join(there)} are there, but cannot be read as such; convert {format.name} says why"
    )

"""`spacy_elmo.convert`: a model of another program to a weights file, in one call."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Literal

import torch

from ..bilm.weights import Weights
from . import formats
from .readers.archive import opened
from .warm import with_start

_LOGGER = logging.getLogger("spacy_elmo")


def convert(
    source: str | Path,
    out: str | Path | None = None,
    *,
    format: Literal["auto", "allennlp", "bilm-hdf5", "bilm-tf", "many-langs"] = "auto",
    dtype: Literal["float32", "float16"] = "float32",
    warm: str | Path | None = None,
    lang: str | None = None,
    force: bool = False,
    **options: Any,
) -> Weights:
    """Convert the model of another ELMo program, and return its weights.

    It does what `python -m spacy elmo convert` does. The notes that the command prints are logged by the logger
    "spacy_elmo", at the level INFO.

    Args:
        source: a folder, an archive (.zip, .tar.gz), or a file of the model.
        out: weights file to write (.safetensors); None: none.
        format: the format of the model; "auto" detects it.
        dtype: "float32" keeps every bit; "float16" halves the file.
        warm: text file, one sentence a line, on which the start state for `start = "warm"` is estimated; None: none.
        lang: language of the model, which no format contains, for its card.
        force: overwrite `out`.
        options: only for a named format: options of its own command, such as `options`, `vocabulary` and `softmax` of
            "bilm-hdf5".

    Raises:
        FileExistsError: `out` exists, and `force` is not set.
        OSError: a file is missing, cannot be read, or cannot be written.
        ValueError: the files are damaged, contradict each other, or fit no format or several.
    """
    if out is not None and Path(out).exists() and not force:
        raise FileExistsError(f"{out} exists: choose another name, or overwrite it with force=True")
    with opened(source) as files:
        if format == "auto":
            if options:
                raise ValueError(
                    f'{", ".join(options)}: options need the name of a format, and not "auto"'
                )
            conversion = formats.convert(files.path, dtype=getattr(torch, dtype))
        else:
            conversion = _converter(format)(files.path, dtype=getattr(torch, dtype), **options)
        if warm is not None:
            conversion = with_start(conversion, warm)
    for note in conversion.notes:
        _LOGGER.info(files.shown(note))
    weights = conversion.weights
    if lang is not None:
        weights.card["language"] = lang
    if out is not None:
        weights.save(out)
    return weights


def _converter(name: str) -> Any:
    converters = {format.name: format.convert for format in formats.FORMATS}
    if name not in converters:
        raise ValueError(f"format = {name!r}: expected auto or one of {', '.join(converters)}")
    return converters[name]

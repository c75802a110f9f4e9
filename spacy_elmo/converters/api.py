"""The function `spacy_elmo.convert`, which converts a model of another program to a weights file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Literal

import torch

from ..bilm.weights import Weights
from ..files import check_output_file
from ..weight_names import is_foreign
from .formats import choose
from .readers.archive import opened
from .result import Conversion
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

    This function does the same as `python -m spacy elmo convert`. The command prints notes; the function
    sends them to the logger "spacy_elmo", at level INFO.

    Args:
        source: a folder, an archive (.zip, .tar.gz), or a file of the model.
        out: weights file to write (.safetensors); None: write no file.
        format: the format of the model; "auto" detects it.
        dtype: "float32" keeps every bit; "float16" halves the size of the file.
        warm: text file with one sentence per line, and spaces between the words. The text is used to estimate
            the initial LSTM state for elmo's option `start = "warm"`. None: the weights have no start state.
        lang: language code of the model, for its card. The formats do not record the language.
        force: overwrite `out`.
        options: options of the format, with the same names as in the command: `options`, `weights`,
            `vocabulary`, `softmax` and `token_vectors` for "bilm-hdf5"; `options` and `vocabulary` for
            "bilm-tf"; `options`, `prefix` and `accept` for "allennlp".

    Raises:
        FileExistsError: `out` exists, and `force` is not set.
        OSError: a file is missing, cannot be read, or cannot be written.
        ValueError: the files are damaged or contradict each other, or `out` is the name of a foreign model.
        ValueError: the files fit no format, or several formats.
        ValueError: the format does not have one of the given options, or `dtype` is not supported.
        ValueError: a file of the model is missing or cannot be read, and `source` is an archive or `format`
            is "auto".
    """
    if out is not None:
        check_out(Path(out), force=force)
    conversion = read_model(source, format, dtype=dtype, warm=warm, lang=lang, **options)
    for note in conversion.notes:
        _LOGGER.info(note)
    if out is not None:
        conversion.weights.save(out)
    return conversion.weights


def check_out(out: Path, *, force: bool) -> None:
    """Check that a weights file can be written, and that its name is not that of a model of another program,
    because `weights` would refuse such a name.

    Args:
        force: allow overwriting an existing file.

    Raises:
        OSError: see `check_output_file`.
        ValueError: the name ends like that of a model of another program.
    """
    check_output_file(out, force=force)
    if is_foreign(out):
        raise ValueError(f"{out}: the name of a weights file ends in .safetensors")


def read_model(
    source: str | Path,
    format: str = "auto",
    *,
    dtype: str = "float32",
    warm: str | Path | None = None,
    lang: str | None = None,
    **options: Any,
) -> Conversion:
    """Read the model of another ELMo program, and convert it to our weights.

    Args:
        source, format, dtype, warm, lang: see `convert`.
        options: options of the format, see `convert`. Options with the value None or False are ignored.

    Returns:
        The weights, the files that were read, and notes for the user. If `format` is "auto", the first note
        names the detected format and the reason. If `source` is an archive, all paths start with the name of
        the archive, as in `model.zip/options.json`.

    Raises:
        OSError, ValueError: see `convert`.
    """
    if dtype not in ("float32", "float16"):
        raise ValueError(f"dtype = {dtype!r} (`--dtype`) must be float32 or float16")
    options = {name: value for name, value in options.items() if value not in (None, False)}
    with opened(source) as files:
        reader, reason = choose(files.path, format)
        if unknown := options.keys() - reader.options:
            flags = [f"{name} (`--{name.replace('_', '-')}`)" for name in sorted(unknown)]
            raise ValueError(
                f"The format {reader.name} has no option {', '.join(flags)}. Its options are:"
                f" {', '.join(sorted(reader.options)) or 'none'}"
            )
        try:
            conversion = reader.convert(files.path, dtype=getattr(torch, dtype), **options)
        except (ValueError, OSError) as error:
            if reason is None:
                raise
            raise ValueError(
                f"{error}\n  The detected format is {reader.name} ({reason})"
            ) from error
        if reason is not None:
            conversion.notes.insert(0, f"{reader.name}: {reason}")
        if warm is not None:
            conversion = with_start(conversion, warm)
    if lang is not None:
        conversion.weights.card["language"] = lang
    else:
        conversion.notes.append(
            "The language of the model is not known. Set lang (`--lang`), so that elmo can warn if a pipeline has"
            " another language"
        )
    return Conversion(
        conversion.weights,
        [Path(files.shown(path)) for path in conversion.files],
        [files.shown(note) for note in conversion.notes],
    )

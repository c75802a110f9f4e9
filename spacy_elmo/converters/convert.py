"""The table of foreign formats, and conversion from and to them: `spacy_elmo.convert`."""

from __future__ import annotations

import dataclasses
import inspect
import logging
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..bilm.weights import Weights
from ..files import check_output_file
from ..weight_names import is_foreign
from . import allennlp, bilm_tf, many_langs
from .start_state import mean_start_state
from .untrusted_files import opened

_LOGGER = logging.getLogger("spacy_elmo")
# The largest public models need minutes for this many sentences. More would hardly make the mean more exact.
_MAX_SENTENCES = 2000


class Format(NamedTuple):
    """A foreign format that can be converted."""

    convert: Callable[..., tuple[Weights, list[str]]]
    """Function of a folder or file, and of the options. It returns the weights, and notes for the user."""
    files: tuple[str, ...]
    """Patterns of file names that no other format has."""
    content: str
    """Description of the files, for error messages."""


FORMATS = {
    "bilm-hdf5": Format(
        bilm_tf.convert_hdf5, ("*.hdf5", "*.h5"), "options.json and weights (.hdf5) of bilm-tf or AllenNLP",
    ),
    "bilm-tf": Format(
        bilm_tf.convert_checkpoint, ("*.index",),
        "options.json and a checkpoint of TensorFlow (.index, .data-00000-of-00001)",
    ),
    "allennlp": Format(allennlp.convert, ("*.th",), "config.json and parameters (weights.th or best.th)"),
    "many-langs": Format(
        many_langs.convert, ("encoder.pkl", "token_embedder.pkl"),
        "config.json, word.dic, char.dic, encoder.pkl and token_embedder.pkl",
    ),
}  # fmt: skip
"""{name: foreign format}. The options of a format are the parameters of its function `convert`."""


def convert(
    source: str | Path,
    out: str | Path | None = None,
    *,
    format: str = "auto",
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
        format: "bilm-hdf5", "bilm-tf", "allennlp", "many-langs", or "auto" to detect the format.
        warm: text file with one sentence per line, and spaces between the words. The text is used to estimate
            the initial LSTM state for elmo's option `start = "warm"`. None: the weights have no start state.
        lang: language code of the model, for its card. The formats do not record the language.
        force: overwrite `out`.
        options: options of the format, with the same names as in the command: `options`, `vocabulary`,
            `softmax` and `token_vectors` for "bilm-hdf5"; `options` and `vocabulary` for "bilm-tf"; `options`
            for "allennlp".
    """
    if out is not None:
        check_weights_file(Path(out), force=force)
    weights, notes = read_model(source, format, warm=warm, lang=lang, **options)
    for note in notes:
        _LOGGER.info(note)
    if out is not None:
        weights.save(out)
    return weights


def check_weights_file(out: Path, *, force: bool) -> None:
    """Check that a weights file can be written, and that its name is not that of a foreign model, which the
    option `weights` would refuse."""
    check_output_file(out, force=force)
    if is_foreign(out):
        raise ValueError(f"{out}: the name of a weights file ends in .safetensors")


def read_model(
    source: str | Path,
    format: str = "auto",
    *,
    warm: str | Path | None = None,
    lang: str | None = None,
    **options: Any,
) -> tuple[Weights, list[str]]:
    """Read the model of another ELMo program, and convert it to our weights.

    Args:
        source, format, warm, lang: see `convert`.
        options: options of the format, see `convert`. Options with the value None are ignored.

    Returns:
        The weights, and notes for the user. If `source` is an archive, paths in the notes start with the name
        of the archive, as in `model.zip/options.json`.
    """
    files = {name: Path(value) for name, value in options.items() if value is not None}
    with opened(source) as model:
        name, notes = _choose(model.path, format)
        _, *known = inspect.signature(FORMATS[name].convert).parameters
        if unknown := files.keys() - set(known):
            raise ValueError(
                f"The format {name} has no option {', '.join(sorted(unknown))}. Its options are:"
                f" {', '.join(known) or 'none'}"
            )
        weights, more = FORMATS[name].convert(model.path, **files)
        notes = [model.shown(note) for note in notes + more]
    if warm is not None:
        weights = _with_start(weights, Path(warm))
        notes.append(f"start state: mean over {weights.card['start']}")
    if lang is not None:
        weights.card["language"] = lang
    else:
        notes.append(
            "The language of the model is not known. Set lang (`--lang`), so that elmo can warn if a pipeline has"
            " another language"
        )
    return weights, notes


def _choose(path: Path, name: str) -> tuple[str, list[str]]:
    """Return the name of a format, which is detected if `name` is "auto", and a note on why."""
    if name in FORMATS:
        return name, []
    if name != "auto":
        raise ValueError(f"format = {name!r} is unknown. Use auto or one of {', '.join(FORMATS)}")
    path.stat()  # raises an OSError with the path if it does not exist
    reasons = {name: _recognized(path, format) for name, format in FORMATS.items()}
    found = [name for name, files in reasons.items() if files]
    if len(found) == 1:
        return found[0], [f"{found[0]}, because there is {', '.join(reasons[found[0]])}"]
    if found:
        listing = "".join(f"\n  {name}: {', '.join(reasons[name])}" for name in found)
        raise ValueError(
            f"{path} fits several formats. Choose one of them instead of auto:{listing}"
        )
    listing = "".join(f"\n  {name}: {format.content}" for name, format in FORMATS.items())
    raise ValueError(f"{path} is not a model of a known format. Files of each format:{listing}")


def _recognized(path: Path, format: Format) -> list[str]:
    """Return the names of the files, in a folder or of `path` itself, that only a format has."""
    if path.is_file():
        return [path.name] if any(path.match(pattern) for pattern in format.files) else []
    return sorted(file.name for pattern in format.files for file in path.glob(pattern))[:3]


def _with_start(weights: Weights, text: Path) -> Weights:
    """Return weights with the mean LSTM state after the sentences of a text file; see `mean_start_state`. Only
    the first 2,000 lines that are not blank are read."""
    try:
        with text.open(encoding="utf-8-sig") as file:
            lines = (words for line in file if (words := line.split()))
            sentences = list(islice(lines, _MAX_SENTENCES))
        start = mean_start_state(weights.build_bilm(), sentences)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    card = {**weights.card, "start": f"{len(sentences):,} sentences of {text.name}"}
    return dataclasses.replace(weights, start_state=start, card=card)


def _export_onnx(weights: Weights, path: str | Path, *, force: bool = False) -> list[Path]:
    from .onnx import export  # onnx is an extra

    return export(weights, path, force=force)


EXPORTS: dict[str, Callable[..., list[Path]]] = {
    "bilm-hdf5": bilm_tf.export,
    "allennlp": allennlp.export,
    "onnx": _export_onnx,
}
"""{name of a format: function that writes it}. Their arguments are the weights, a folder (for ONNX a file) and
`force`. They return the paths of the written files."""

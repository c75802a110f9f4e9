"""Our weights to one .onnx file, which runs without Python or torch."""

from __future__ import annotations

import json
from pathlib import Path

from ...bilm.weights import Weights
from ...files import atomic_write

# A message of protobuf, which the file is, ends at 2**31 bytes; the rest is for the graph and the names of the rows.
_MAX_BYTES = 2_000_000_000


def export(weights: Weights, path: str | Path, *, force: bool = False) -> list[Path]:
    """Write the network of `onnx_graph.onnx_model`.

    Args:
        path: of the file, whose metadata hold as JSON what else a user must know: `config` and `card`; `vocabulary`,
            the words of the rows of a word table, and `alphabet`, the characters of the rows after the marks.
        force: replace a file that stands there.

    Returns:
        The file. It appears whole or not at all.

    Raises:
        OSError: `path` is a folder, or its parent is missing or not writable; or there is a file, and `force` is not
            set.
        ValueError: the weights are more than such a file can hold, or onnx is missing.
    """
    path = Path(path)
    _check(path, force)
    weights = weights.without_head()
    size = 4 * sum(tensor.numel() for tensor in weights.tensors.values())
    if size > _MAX_BYTES:
        raise ValueError(
            f"{size:,} bytes of weights in float32: one .onnx file holds {_MAX_BYTES:,}"
        )
    atomic_write(path, _content(weights))
    return [path]


def _content(weights: Weights) -> bytes:
    try:
        from onnx.helper import set_model_props
    except ImportError as error:
        raise ValueError("ONNX files need onnx: pip install spacy-elmo[onnx]") from error
    from .graph import onnx_model

    model = onnx_model(weights.build_bilm())
    facts = {
        "config": weights.config.to_dict(),
        "card": weights.card,
        "vocabulary": weights.vocabulary,
        "alphabet": weights.alphabet,
    }
    set_model_props(model, {name: json.dumps(fact) for name, fact in facts.items()})
    return model.SerializeToString()


def _check(path: Path, force: bool) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the .onnx file to write")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}, the folder of {path.name}, does not exist")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; --force overwrites it")

"""Export to one .onnx file, which runs without Python or torch."""

from __future__ import annotations

import json
from pathlib import Path

from ...bilm.weights import Weights
from ...files import atomic_write, check_output_file

# The file is one message of protobuf, at most 2**31 bytes; the remainder is for the graph and the names of the rows.
_MAX_BYTES = 2_000_000_000


def export(weights: Weights, path: str | Path, *, force: bool = False) -> list[Path]:
    """Write the network of `onnx_model` to a file, which appears whole or not at all.

    Args:
        path: the file. Its metadata contain, as JSON, `config` and `card`; `vocabulary`, the words of the rows of a
            word table; and `alphabet`, the characters of the rows after the marks.
        force: replace an existing file.

    Returns:
        The written file.

    Raises:
        OSError: `path` is a folder, or its parent is missing or not writable; or the file exists, and `force` is not
            set.
        ValueError: the weights are larger than such a file can be, or onnx is missing.
    """
    path = Path(path)
    check_output_file(path, force=force)
    weights = weights.without_head()
    size = 4 * sum(tensor.numel() for tensor in weights.tensors.values())
    if size > _MAX_BYTES:
        raise ValueError(
            f"{size:,} bytes of weights in float32: one .onnx file can hold {_MAX_BYTES:,}"
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
    metadata = {
        "config": weights.config.to_dict(),
        "card": weights.card,
        "vocabulary": weights.vocabulary,
        "alphabet": weights.alphabet,
    }
    set_model_props(model, {name: json.dumps(value) for name, value in metadata.items()})
    return model.SerializeToString()

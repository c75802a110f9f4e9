"""Export of a biLM to an .onnx file. The file can be run without Python and torch."""

from __future__ import annotations

import json
from pathlib import Path

from ...bilm.weights import Weights
from ...files import atomic_write, check_output_file

# The file is one protobuf message, at most 2**31 bytes. The rest is for the graph and the vocabulary.
_MAX_BYTES = 2_000_000_000


def export(weights: Weights, path: str | Path, *, force: bool = False) -> list[Path]:
    """Atomically write a biLM to an .onnx file; see `onnx_model`.

    The metadata of the file contain four entries in JSON: `config`, `card`, `vocabulary` and `alphabet`. The
    vocabulary and the alphabet are in the order of the rows of the word and character embedding matrices. The
    alphabet does not contain the special symbols, which have the first rows.

    Args:
        path: the file to write.
        force: replace an existing file.

    Returns:
        A list with the path of the written file.

    Raises:
        OSError: `path` is a folder, the file exists and `force` is not set, or the parent folder is missing
            or not writable.
        ValueError: the weights are too large for an .onnx file, or onnx is missing.
    """
    path = Path(path)
    check_output_file(path, force=force)
    weights = weights.without_head()
    size = 4 * sum(tensor.numel() for tensor in weights.tensors.values())
    if size > _MAX_BYTES:
        raise ValueError(
            f"The weights have {size:,} bytes in float32, but an .onnx file can contain only {_MAX_BYTES:,}"
        )
    atomic_write(path, _content(weights))
    return [path]


def _content(weights: Weights) -> bytes:
    try:
        from onnx.helper import set_model_props
    except ImportError as error:
        raise ValueError('ONNX files need onnx: pip install "spacy-elmo[onnx]"') from error
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

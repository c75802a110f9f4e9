"""The options of `elmo`: their types, and what they are when nothing is said.

spaCy imports this module at its every start, so it imports nothing that takes time.
"""

from typing import Any, Literal, TypeAlias

from .bundled import DEFAULT_WEIGHTS

DType: TypeAlias = Literal["float32", "float16"]
Start: TypeAlias = Literal["zero", "warm"]
Store: TypeAlias = Literal["layers", "average"]

MAX_BATCH_TOKENS = 4096

READING: dict[str, Any] = {
    "weights": DEFAULT_WEIGHTS,
    "frozen": True,
    "trainable": "all",
    "unfreeze_at": 0,
    "max_batch_tokens": MAX_BATCH_TOKENS,
    "get_spans": None,
    "dtype": "float32",
    "start": "zero",
    "precision": "float32",
}
"""Of the biLM, in a component of its own or inside a consumer."""

KEEPING: dict[str, Any] = {
    "store": "layers",
    "cache_mb": 1000,
    "cache_dir": None,
    "hooks": False,
    "set_extra_annotations": None,
}
"""Of the component alone."""

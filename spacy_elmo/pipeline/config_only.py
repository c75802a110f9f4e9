"""Attributes of a thinc model that are not saved with the model."""

from __future__ import annotations

from typing import Any

from thinc.api import Model
from thinc.model import deserialize_attr, serialize_attr


class ConfigOnly:
    """Base class for a value that comes from the config or the pipeline. The `attrs` of a thinc model store
    the value.

    The value is saved as empty bytes, and loading a model does not change the value. So no saved value
    overrides the config.
    """


@serialize_attr.register(ConfigOnly)
def _serialize(_: Any, value: ConfigOnly, name: str, model: Model) -> bytes:
    return b""


@deserialize_attr.register(ConfigOnly)
def _deserialize(_: Any, value: bytes, name: str, model: Model) -> Any:
    return model.attrs[name]

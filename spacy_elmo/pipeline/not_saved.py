"""Attributes of a thinc model that are not saved with the model."""

from __future__ import annotations

from typing import Any

from thinc.api import Model
from thinc.model import deserialize_attr, serialize_attr


class NotSaved:
    """Base class of values in the `attrs` of a thinc model that are not saved with the model, because they
    come from the config or the pipeline.

    In a saved model, empty bytes take the place of the value. Loading the saved model keeps the current value
    of the attribute, so no saved value overrides the config.
    """


@serialize_attr.register(NotSaved)
def _serialize(_: Any, value: NotSaved, name: str, model: Model) -> bytes:
    return b""


@deserialize_attr.register(NotSaved)
def _deserialize(_: Any, value: bytes, name: str, model: Model) -> Any:
    return model.attrs[name]

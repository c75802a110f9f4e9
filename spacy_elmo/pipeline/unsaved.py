"""Attributes of a thinc model that are not saved with it."""

from __future__ import annotations

from typing import Any

from thinc.api import Model
from thinc.model import deserialize_attr, serialize_attr


class Unsaved:
    """Base of what stands in a model's `attrs` and comes from the config or the pipeline, so that no saved value may
    win over it: it is written as nothing, and reading leaves what is there."""


@serialize_attr.register(Unsaved)
def _serialize(_: Any, value: Unsaved, name: str, model: Model) -> bytes:
    return b""


@deserialize_attr.register(Unsaved)
def _deserialize(_: Any, value: bytes, name: str, model: Model) -> Any:
    return model.attrs[name]

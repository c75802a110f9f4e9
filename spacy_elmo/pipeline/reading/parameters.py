"""The parameters of a biLM in training: which of them are trained, and whether they have changed."""

from __future__ import annotations

from ...bilm.model import BiLM
from ..options import Trainable


def require_gradients(bilm: BiLM, trainable: Trainable | None) -> None:
    """Switch on the gradients of the parameters that are trained, and only of those; None: of no parameter."""
    last_layer = f"lstm.{bilm.config.layers - 1}."
    prefix = {"all": "", "lstm": "lstm.", "top": last_layer}.get(trainable or "")
    for name, param in bilm.named_parameters():
        param.requires_grad_(prefix is not None and name.startswith(prefix))


def change_counters(bilm: BiLM) -> list[tuple[int, int]]:
    """Return the identity of each parameter and torch's count of its changes in place, which includes changes from
    outside, such as `parameter.add_` or `load_state_dict`, but not those of `parameter.data`."""
    return [(id(param), param._version) for param in bilm.parameters()]

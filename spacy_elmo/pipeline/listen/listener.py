"""`spacy-elmo.ElmoListener.v1`: a layer that passes the vectors of an `elmo` component to a later
component."""

import weakref
from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..config_only import ConfigOnly
from ..encode.encoder import layers_and_width
from ..factory_options import flatten_options
from ..layer_source import LayerSource
from .scalar_mix import MixOptions, scalar_mix

_SENTINEL = "elmo_listener"


class ListenerState(ConfigOnly):
    """The settings of a listener, and the listener's link to an `elmo` component. This object is not saved
    with the model.

    A copy of a listener (`nlp.rehearse` makes such copies) is linked to the same `elmo` component as the
    original. If a whole pipeline is copied or unpickled, the new `elmo` component links the new listeners to
    itself.

    Args:
        upstream_name: name of the `elmo` component; "*": the nearest `elmo` component before the listener.
        width: width of the biLM's layers in the config; None if the config sets no width.
    """

    def __init__(self, upstream_name: str, width: int | None) -> None:
        self.upstream_name = upstream_name
        self.width = width
        """The argument `width`."""
        self.docs_are_copies = False
        """True if the component with the listener passes copies of Docs to its model. The `EntityLinker`
        does so: it trains on copies of Docs, and predicts on excerpts of Docs."""
        self._upstream: weakref.ref[Any] | None = None

    @property
    def linked_to(self) -> Any:
        """The linked `elmo` component; None if there is no link, or if the component no longer exists."""
        return self._upstream() if self._upstream is not None else None

    @property
    def source(self) -> LayerSource:
        """Object from which this listener reads the layers that the linked `elmo` component computes.

        Raises:
            ValueError: no `elmo` component is linked.
        """
        upstream = self.linked_to
        if upstream is None:
            expected = (
                "an elmo component" if self.upstream_name == "*" else repr(self.upstream_name)
            )
            raise ValueError(
                f"ElmoListener(upstream={self.upstream_name!r}) has no component to listen to: {expected} must come"
                " before the component with this listener. To use that component without elmo, first give it a copy of"
                " the biLM with nlp.replace_listeners"
            )
        return upstream.source

    def link(self, upstream: Any) -> None:
        """Link the listener to the `elmo` component `upstream`; None: unlink the listener."""
        self._upstream = weakref.ref(upstream) if upstream is not None else None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_upstream": None}  # weak references cannot be pickled

    def __deepcopy__(self, memo: dict[int, Any]) -> "ListenerState":
        copied = ListenerState(self.upstream_name, self.width)
        copied._upstream, copied.docs_are_copies = self._upstream, self.docs_are_copies
        return copied


@flatten_options
def ElmoListener_v1(
    *, width: int | None = None, upstream: str = "*", options: MixOptions
) -> Model[list[Doc], list[Floats2d]]:
    """Build a layer that outputs the vectors of an earlier `elmo` component of the pipeline, (n_tokens,
    width) per Doc.

    Args:
        width: width of the biLM's layers; null: the width of the `elmo` component's biLM, which
            `nlp.initialize` looks up and which is saved with the model.
        upstream: name of the `elmo` component; "*": the nearest `elmo` component before the listener.
        options: the options of the scalar mix. In a config, every field of `MixOptions`, such as `layers` and
            `dropout`, is an argument of this function.
    """
    return Model(
        "elmo-listener",
        forward,
        init=init,
        dims={"nO": width},
        layers=[scalar_mix(options)],
        attrs={_SENTINEL: ListenerState(upstream, width)},
    )


def is_listener(model: Model) -> bool:
    """Return True if a layer is an `ElmoListener_v1`."""
    return _SENTINEL in model.attrs


def state_of(listener: Model) -> ListenerState:
    """Return the `ListenerState` of a listener: its settings, and its link to an `elmo` component."""
    return listener.attrs[_SENTINEL]


def init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Set the listener's number of layers and width to the values of the biLM in the linked `elmo` component.

    Raises:
        ValueError: no `elmo` component is linked, or the width differs from the width in the config.
    """
    state = state_of(model)
    layers, width = layers_and_width(state.source.model)
    if state.width not in (None, width):
        raise ValueError(
            f"ElmoListener(width={state.width}), but {state.source.name!r} has layers of width {width}."
            " Set width = null to use the width of the component"
        )
    model.set_dim("nO", width)
    model.layers[0].initialize(X=[model.ops.alloc3f(layers, 0, width)])
    state.source.zeros(X or [])


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Apply the listener's scalar mix to the layers of Docs from the linked `elmo` component."""
    state = state_of(model)
    return mix_layers(state.source, model.layers[0], docs, is_train, copies=state.docs_are_copies)


def mix_layers(
    source: LayerSource, mix: Model, docs: list[Doc], is_train: bool, *, copies: bool = False
) -> tuple[list[Floats2d], Callable]:
    """Apply the scalar mix `mix` to the layers of Docs from a `LayerSource`. In training, apply the dropout
    of the mix to the result.

    Args:
        copies: True if the Docs are copies (see `ListenerState.docs_are_copies`).

    Returns:
        The mixed vectors of each Doc, (n_tokens, width), and the function for the backward pass. If the biLM
        is trained, this function also passes the gradient of the layers to the `LayerSource`.
    """
    add_gradient = None
    if is_train:
        layers, add_gradient = source.train(docs, copies=copies)
    else:
        layers = source.read(docs, copies=copies)
    mixed, unmix = mix(layers, is_train)
    dropout = mix.attrs["options"].dropout if is_train else 0.0
    masks = [mix.ops.get_dropout_mask(x.shape, dropout) for x in mixed] if dropout else None

    def backprop(d_mixed: list[Floats2d]) -> list[Doc]:
        d_layers = unmix(_masked(d_mixed, masks), inputs=add_gradient is not None)
        if add_gradient is not None and d_layers:
            add_gradient(d_layers)
        return []

    return _masked(mixed, masks), backprop


def _masked(X: list[Floats2d], masks: list[Any] | None) -> list[Floats2d]:
    return X if masks is None else [x * mask for x, mask in zip(X, masks, strict=True)]

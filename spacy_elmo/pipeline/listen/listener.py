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
    """The settings of a listener, and its link to an `elmo` component. They are not saved with the model.

    A copy of a listener (`nlp.rehearse` makes such copies) is linked to the same `elmo` component as the
    original. If a whole pipeline is copied or unpickled, the new `elmo` component links the new listeners to
    itself.
    """

    def __init__(self, upstream_name: str, width: int | None) -> None:
        self.upstream_name = upstream_name
        self.width = width
        """The width in the config; None if the config sets no width."""
        self.docs_are_copies = False
        """True if the component with the listener does not pass the pipeline's own Docs to its model. The
        `EntityLinker` trains on copies and predicts on excerpts of the Docs."""
        self._upstream: weakref.ref[Any] | None = None

    @property
    def linked_to(self) -> Any:
        """The linked component; None if no component is linked, or if the component no longer exists."""
        return self._upstream() if self._upstream is not None else None

    @property
    def source(self) -> LayerSource:
        """Object from which this listener reads the layers that the linked component computes.

        Raises:
            ValueError: no component is linked.
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
        """Link the listener to a component; None: unlink the listener."""
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
    """Build a layer that outputs the vectors of an earlier `elmo` component.

    The output is (n_tokens, width) per Doc.

    Args:
        width: width of the biLM's layers; null: the listener takes the width from the component at
            `initialize`, and saves it.
        upstream: the name of the component; "*": the nearest `elmo` component before the listener.
        options: the options of the scalar mix, such as `layers` and `dropout`. Every field of `MixOptions` is
            an argument.
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
    """Set the dims of the listener to the dims of the linked biLM.

    Raises:
        ValueError: no component is linked, or the component's width differs from the width in the config.
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
    """Mix the layers that the linked component returns for Docs."""
    state = state_of(model)
    return mix_layers(state.source, model.layers[0], docs, is_train, copies=state.docs_are_copies)


def mix_layers(
    source: LayerSource, mix: Model, docs: list[Doc], is_train: bool, *, copies: bool = False
) -> tuple[list[Floats2d], Callable]:
    """Mix the layers that a `LayerSource` returns for Docs. In training, apply the dropout of the mix.

    If the biLM is trained, the backward pass also gives the gradient of the layers to the `LayerSource`.
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

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
    """The settings of a listener, and the listener's links to `elmo` components. This object is not saved with
    the model.

    A pipeline links the listener to its `elmo` component. If another pipeline has sourced the component with
    the listener, both pipelines share the listener, which is then linked to the `elmo` components of both. A
    copy of a listener (`nlp.rehearse` makes such copies) has the same links as the original. If a whole
    pipeline is copied or unpickled, the new `elmo` component links the new listeners to itself.

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
        self._upstreams: list[weakref.ref[Any]] = []

    @property
    def _existing(self) -> list[Any]:
        return [upstream for link in self._upstreams if (upstream := link()) is not None]

    @property
    def linked_to(self) -> Any:
        """The `elmo` component that was linked last; None if there is no link, or if no linked component
        exists any more."""
        return next(iter(self._existing), None)

    @property
    def source(self) -> LayerSource:
        """Object from which this listener reads the layers that the `elmo` component linked last computes.

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

    def source_of(self, docs: list[Doc]) -> LayerSource:
        """Return the source of the linked `elmo` component that has processed these Docs, or else `source`.

        Raises:
            ValueError: no `elmo` component is linked.
        """
        if len(self._existing) > 1:
            for upstream in self._existing:
                if upstream.source.has(docs):
                    return upstream.source
        return self.source

    def link(self, upstream: Any) -> None:
        """Link the listener to the `elmo` component `upstream`."""
        self.unlink(upstream)
        self._upstreams.insert(0, weakref.ref(upstream))

    def unlink(self, upstream: Any) -> None:
        """Remove the link to the `elmo` component `upstream`, if there is one."""
        self._upstreams = [weakref.ref(other) for other in self._existing if other is not upstream]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_upstreams": []}  # weak references cannot be pickled

    def __deepcopy__(self, memo: dict[int, Any]) -> "ListenerState":
        copied = ListenerState(self.upstream_name, self.width)
        copied._upstreams, copied.docs_are_copies = list(self._upstreams), self.docs_are_copies
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
    source = state.source_of(docs)
    return mix_layers(source, model.layers[0], docs, is_train, copies=state.docs_are_copies)


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

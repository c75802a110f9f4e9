"""`spacy-elmo.ElmoListener.v1`: a layer that passes the vectors of an `elmo` component to a later
component."""

import copy
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..encode.encoder import layers_and_width
from ..layer_source import LayerSource
from ..not_saved import NotSaved
from ..store.extensions import numbers_of
from .scalar_mix import LayerChoice, MixOptions, mix_layers, scalar_mix

_SENTINEL = "elmo_listener"


class ListenerState(NotSaved):
    """The settings of a listener, and its links to `elmo` components. This object is not saved with the model.

    A listener has a link to an `elmo` component of each pipeline that contains the listener: two pipelines
    share a component that one has sourced from the other. The links are weak references, so a pipeline can be
    deleted. A copy of a listener, as `nlp.rehearse` makes, has the same links; in a copy of a whole pipeline, it is
    linked to the new `elmo` component.

    Args:
        upstream_name: name of the `elmo` component; "*": the only `elmo` component before the listener.
        width: width of the biLM's layers in the config; None if the config sets no width.
    """

    def __init__(self, upstream_name: str, width: int | None) -> None:
        self.upstream_name = upstream_name
        self.width = width
        self.in_entity_linker = False
        self.idle_steps = 0
        """Steps in which the biLM was trained since the listener was."""
        self.needs_width = False
        """True if an `EntityLinker` contains the listener, and its layers have a width that is not in the config."""
        self._links: list[weakref.ref[Any]] = []

    @property
    def upstreams(self) -> list[Any]:
        """The linked `elmo` components that exist, the last linked first."""
        return [upstream for link in self._links if (upstream := link()) is not None]

    @upstreams.setter
    def upstreams(self, upstreams: list[Any]) -> None:
        self._links = [weakref.ref(upstream) for upstream in upstreams]

    def source_for(self, docs: Sequence[Doc]) -> LayerSource:
        """Return the source of the linked component that fits these Docs of one pipeline best: it has run or trains on
        them, or has their vocabulary, or was linked last."""
        upstreams = self.upstreams
        if not upstreams:
            expected = (
                "an elmo component" if self.upstream_name == "*" else repr(self.upstream_name)
            )
            raise ValueError(
                f"ElmoListener(upstream={self.upstream_name!r}) has no component to listen to: {expected} must come"
                " before the component with this listener. To use that component without elmo, first give it a copy of"
                " the biLM with nlp.replace_listeners"
            )
        if len(upstreams) == 1:
            return upstreams[0].source
        return max(upstreams, key=lambda upstream: _fit(upstream, docs)).source

    def link(self, upstream: Any) -> None:
        """Link the listener to the `elmo` component `upstream`."""
        self.unlink(upstream)
        self.upstreams = [upstream, *self.upstreams]

    def unlink(self, upstream: Any) -> None:
        """Remove the link to the `elmo` component `upstream`, if there is one."""
        self.upstreams = [other for other in self.upstreams if other is not upstream]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_links": self.upstreams}  # weak references cannot be pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.upstreams = state["_links"]

    def __deepcopy__(self, memo: dict[int, Any]) -> "ListenerState":
        copied = copy.copy(self)
        copied.upstreams = [memo[id(u)] for u in self.upstreams if id(u) in memo] or self.upstreams
        return copied


def _fit(upstream: Any, docs: Sequence[Doc]) -> tuple[bool, bool]:
    has_run = any(upstream.source.id in numbers_of(doc) for doc in docs)
    return has_run, all(upstream.vocab is doc.vocab for doc in docs)


def ElmoListener_v1(
    *,
    width: int | None = None,
    upstream: str = "*",
    layers: LayerChoice = "mix",
    dropout: float = 0.0,
    l2: float = 0.0,
) -> Model[list[Doc], list[Floats2d]]:
    """Build the layer that gives a component the vectors of an earlier `elmo`, (n_tokens, width) per Doc.

    Args:
        width: width of the vectors. null: the width of the biLM. Set it for the entity linker, because spaCy needs the
            width before the biLM is loaded.
        upstream: name of the `elmo` component. "*": the only one before this component.
    """
    return Model(
        "elmo-listener",
        forward,
        init=init,
        dims={"nO": width},
        layers=[scalar_mix(MixOptions(layers, dropout, l2))],
        attrs={_SENTINEL: ListenerState(upstream, width)},
    )


def is_listener(model: Model) -> bool:
    """Return True if a layer is an `ElmoListener_v1`."""
    return _SENTINEL in model.attrs


def state_of(listener: Model) -> ListenerState:
    """Return the `ListenerState` of a listener: its settings, and its links to `elmo` components."""
    return listener.attrs[_SENTINEL]


def init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Set the listener's number of layers and width to the values of the biLM in the linked `elmo` component."""
    state = state_of(model)
    source = state.source_for(X or [])
    layers, width = layers_and_width(source.model)
    if state.needs_width:
        raise ValueError(
            f"Set width = {width} in the ElmoListener of the entity linker: spaCy builds the layers after the listener"
            f" before {source.name!r} is loaded, and needs the width for them"
        )
    if state.width not in (None, width):
        raise ValueError(
            f"ElmoListener(width={state.width}), but {source.name!r} has layers of width {width}."
            " Set width = null to use the width of the component"
        )
    model.set_dim("nO", width)
    model.layers[0].initialize(X=[model.ops.alloc3f(layers, 0, width)])


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Apply the listener's scalar mix to the layers of Docs from the linked `elmo` component. In training, the
    backward pass adds the gradient of the layers to that of the other listeners."""
    state = state_of(model)
    # An entity linker predicts on excerpts of Docs, which have no layers.
    warn = not state.in_entity_linker
    layers, add_gradient = state.source_for(docs).layers(docs, is_train, warn=warn)
    trained = add_gradient is not None
    if trained:
        state.idle_steps = 0
    mixed, unmix = mix_layers(model.layers[0], layers, is_train, trained=trained)

    def backprop(d_mixed: list[Floats2d]) -> list[Doc]:
        d_layers = unmix(d_mixed)
        if add_gradient is not None and d_layers:
            add_gradient(d_layers)
        return []

    return mixed, backprop

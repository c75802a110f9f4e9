"""`spacy-elmo.ElmoListener.v1`: the layer inside a consumer that reads the vectors of an elmo component."""

import weakref
from collections.abc import Callable
from typing import Any, Protocol

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from ..unsaved import Unsaved
from .batch import ListenerBatch
from .scalar_mix import Layers, MixOptions, scalar_mix

_SENTINEL = "elmo_listener"


class Upstream(Protocol):
    """What a listener asks of its elmo component."""

    name: str

    def layers_and_width(self) -> tuple[int, int]:
        """L + 1 and the width of its biLM."""

    def stored_layers(self, doc: Doc) -> Floats3d | None:
        """The layers that it has written on a Doc, if they still fit."""

    def compute_missing(self, docs: list[Doc], *, train: bool, expected: bool) -> list[Floats3d]:
        """Compute the layers of Docs on which it did not run, and keep them there."""

    def mark_training(self, docs: list[Doc]) -> None:
        """Take note that it ran on Docs that are in training now."""


class ListenerState(Unsaved):
    """What a listener knows beside its parameters. None of it is saved with the model.

    A copy, such as the one that `nlp.rehearse` takes of a consumer's model, is linked as its original is. When a
    whole pipeline is copied or unpickled, the component in there links its listeners again.
    """

    def __init__(self, upstream_name: str, width: int | None) -> None:
        self.upstream_name = upstream_name
        self.width = width
        """The width that the config states."""
        self.batch: ListenerBatch | None = None
        """The update that is under way. Only the component ends it: between its `update` and the consumer's, others
        may predict."""
        self.sample: ListenerBatch | None = None
        """The Docs of `initialize`, until it is over: its values are no vectors."""
        self.own_docs = False
        """Whether the consumer makes Docs of its own for its model: `EntityLinker` trains on copies and predicts on
        excerpts."""
        self._upstream: weakref.ref[Any] | None = None

    @property
    def linked_to(self) -> Any:
        """The component; None: there is none, or it is gone."""
        return self._upstream() if self._upstream is not None else None

    @property
    def upstream(self) -> Upstream:
        """The component.

        Raises:
            ValueError: there is none.
        """
        upstream = self.linked_to
        if upstream is None:
            wanted = "an elmo component" if self.upstream_name == "*" else repr(self.upstream_name)
            raise ValueError(
                f"ElmoListener(upstream={self.upstream_name!r}) has no component to listen to: {wanted} must"
                " stand before its component in the pipeline. To use a component without it, put the biLM"
                " inside first: nlp.replace_listeners"
            )
        return upstream

    def link(self, upstream: Any) -> None:
        """Listen to a component; None: to nobody."""
        self._upstream = weakref.ref(upstream) if upstream is not None else None
        self.sample = None  # spaCy links the pipeline again when it has initialized it

    def __getstate__(self) -> dict[str, Any]:
        # A batch in training stays with the original, and references cannot be pickled.
        return {**self.__dict__, "batch": None, "sample": None, "_upstream": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> "ListenerState":
        copied = ListenerState(self.upstream_name, self.width)
        copied._upstream, copied.own_docs = self._upstream, self.own_docs
        return copied


def ElmoListener_v1(
    *,
    width: int | None = None,
    upstream: str = "*",
    layers: Layers = "mix",
    grad_factor: float = 1.0,
    dropout: float = 0.0,
    l2: float = 0.0,
    layer_norm: bool = False,
) -> Model[list[Doc], list[Floats2d]]:
    """The vectors of an elmo component that stands earlier in the pipeline: (n_tokens, width) per Doc.

    Args:
        width: of the biLM's layers; null: taken from the component at `initialize`, later from the saved pipeline.
        upstream: the name of the component; "*": the nearest one before.
        layers, grad_factor, dropout, l2, layer_norm: see `MixOptions`.
    """
    options = MixOptions(layers, grad_factor, dropout, l2, layer_norm)
    return Model(
        "elmo-listener",
        forward,
        init=init,
        dims={"nO": width},
        layers=[scalar_mix(options)],
        attrs={_SENTINEL: ListenerState(upstream, width)},
    )


def is_listener(model: Model) -> bool:
    """Whether a layer of a consumer is an `ElmoListener_v1`."""
    return _SENTINEL in model.attrs


def state_of(listener: Model) -> ListenerState:
    """The state of a listener."""
    return listener.attrs[_SENTINEL]


def mix_of(listener: Model[list[Doc], list[Floats2d]]) -> Model[list[Floats3d], list[Floats2d]]:
    """The mix of a listener."""
    return listener.layers[0]


def init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Take the shape of the linked biLM.

    Raises:
        ValueError: no component is linked, or its width is not the stated one.
    """
    state = state_of(model)
    layers, width = state.upstream.layers_and_width()
    if state.width not in (None, width):
        raise ValueError(
            f"ElmoListener(width={state.width}), but {state.upstream.name!r} has layers of width {width}."
            " Leave width at null to take what is there"
        )
    model.set_dim("nO", width)
    mix_of(model).initialize(X=[model.ops.alloc3f(layers, 0, width)])
    state.batch = None
    state.sample = ListenerBatch.sample(X, model.ops, layers, width) if X else None


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Mix the layers of Docs: those of the update under way, else those on the Doc, else those that the component
    computes on demand (for `as_doc`, `rehearse`, a disabled component)."""
    state = state_of(model)
    docs = list(docs)
    if is_train:
        state.sample = None  # still there if the component was disabled in `initialize`
    batch = state.batch or state.sample
    if batch and state.own_docs:
        docs = [batch.original(doc) for doc in docs]
    layers: list[Any] = [batch.layers_of(doc) if batch else None for doc in docs]
    in_batch = [found is not None for found in layers]
    if not all(in_batch):
        state.sample = None
        _from_docs(state, docs, layers, is_train)
    mixed, unmix = mix_of(model)(layers, is_train)

    def backprop(d_mixed: list[Floats2d]) -> list[Doc]:
        trained = batch is not None and batch.trained
        d_layers = unmix(d_mixed, inputs=trained)
        if batch is not None and d_layers:
            for doc, known, gradient in zip(docs, in_batch, d_layers, strict=True):
                if known:
                    batch.add_gradient(doc, gradient)
        return []

    return mixed, backprop


def _from_docs(state: ListenerState, docs: list[Doc], layers: list[Any], is_train: bool) -> None:
    """Fill the gaps in `layers`."""
    upstream = state.upstream
    gaps = [place for place, found in enumerate(layers) if found is None]
    for place in gaps:
        layers[place] = upstream.stored_layers(docs[place])
    missing = [place for place in gaps if layers[place] is None]
    if is_train and len(missing) < len(gaps):
        upstream.mark_training([docs[place] for place in gaps if layers[place] is not None])
    if missing:
        supplied = upstream.compute_missing(
            [docs[place] for place in missing], train=is_train, expected=state.own_docs
        )
        for place, found in zip(missing, supplied, strict=True):
            layers[place] = found

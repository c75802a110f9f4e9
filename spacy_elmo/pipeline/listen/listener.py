"""`spacy-elmo.ElmoListener.v1`: the layer of a consumer that outputs the vectors of an elmo component."""

import weakref
from collections.abc import Callable
from typing import Any, Protocol

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from ..config_only import ConfigOnly
from ..options import flatten_options
from .batch import ListenerBatch
from .mix_options import MixOptions
from .scalar_mix import scalar_mix

_SENTINEL = "elmo_listener"


class LayerProvider(Protocol):
    """The interface of the elmo component that a listener uses."""

    name: str

    def layers_and_width(self) -> tuple[int, int]:
        """Return the number of layers, L + 1, and their width."""

    def stored_layers(self, doc: Doc, *, train: bool) -> Floats3d | None:
        """Return the layers stored on a Doc, if they match the Doc's tokens and, in training, were computed with the
        present weights."""

    def compute_missing(self, docs: list[Doc], *, train: bool, warn: bool) -> list[Floats3d]:
        """Compute the layers of Docs on which it did not run, and store them there."""

    def mark_training(self, docs: list[Doc]) -> None:
        """Mark Docs on which it ran as training data."""


class ListenerState(ConfigOnly):
    """State of a listener beside its parameters. None of it is saved with the model.

    A copy, such as the one that `nlp.rehearse` makes of a consumer's model, is linked to the same component. When a
    whole pipeline is copied or unpickled, the copied component links its listeners again.
    """

    def __init__(self, upstream_name: str, width: int | None) -> None:
        self.upstream_name = upstream_name
        self.width = width
        """The width that the config states."""
        self.batch: ListenerBatch | None = None
        """The batch of the present update. Only the component removes it: between its `update` and the consumer's,
        others may predict."""
        self.zeros: ListenerBatch | None = None
        """The Docs of `initialize`, until it has finished: their layers are zeros."""
        self.docs_are_copies = False
        """True if the consumer passes copies or excerpts of its Docs to its model: `EntityLinker` trains on copies and
        predicts on excerpts."""
        self._upstream: weakref.ref[Any] | None = None

    @property
    def linked_to(self) -> Any:
        """The component that it is linked to; None: there is none, or it no longer exists."""
        return self._upstream() if self._upstream is not None else None

    @property
    def upstream(self) -> LayerProvider:
        """The component that it is linked to.

        Raises:
            ValueError: there is none.
        """
        upstream = self.linked_to
        if upstream is None:
            expected = (
                "an elmo component" if self.upstream_name == "*" else repr(self.upstream_name)
            )
            raise ValueError(
                f"ElmoListener(upstream={self.upstream_name!r}) has no component to listen to: {expected} must"
                " come before its component in the pipeline. To use a component without it, first give it"
                " its own copy of the biLM with nlp.replace_listeners"
            )
        return upstream

    def link(self, upstream: Any) -> None:
        """Link to a component; None: unlink."""
        self._upstream = weakref.ref(upstream) if upstream is not None else None
        self.zeros = None  # spaCy links the pipeline again after it has initialized it

    def __getstate__(self) -> dict[str, Any]:
        # The batch of an update belongs to the original, and weak references cannot be pickled.
        return {**self.__dict__, "batch": None, "zeros": None, "_upstream": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> "ListenerState":
        copied = ListenerState(self.upstream_name, self.width)
        copied._upstream, copied.docs_are_copies = self._upstream, self.docs_are_copies
        return copied


@flatten_options
def ElmoListener_v1(
    *, width: int | None = None, upstream: str = "*", options: MixOptions
) -> Model[list[Doc], list[Floats2d]]:
    """Build a layer that outputs the vectors of an elmo component earlier in the pipeline: (n_tokens, width) per Doc.

    Args:
        width: width of the biLM's layers; null: taken from the component at `initialize`, later from the saved bytes.
        upstream: the name of the component; "*": the nearest one before.
        options: those of its mix (`mix_options.py`), such as `layers` and `dropout`; every field is an argument.
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
    """Return True if a layer of a consumer is an `ElmoListener_v1`."""
    return _SENTINEL in model.attrs


def state_of(listener: Model) -> ListenerState:
    """Return the state of a listener."""
    return listener.attrs[_SENTINEL]


def mix_of(listener: Model[list[Doc], list[Floats2d]]) -> Model[list[Floats3d], list[Floats2d]]:
    """Return the mix of a listener."""
    return listener.layers[0]


def init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    """Set the shape to that of the linked biLM.

    Raises:
        ValueError: no component is linked, or its width differs from the one in the config.
    """
    state = state_of(model)
    layers, width = state.upstream.layers_and_width()
    if state.width not in (None, width):
        raise ValueError(
            f"ElmoListener(width={state.width}), but {state.upstream.name!r} has layers of width {width}."
            " Leave width at null to use the width of the component"
        )
    model.set_dim("nO", width)
    mix_of(model).initialize(X=[model.ops.alloc3f(layers, 0, width)])
    state.batch = None
    state.zeros = ListenerBatch.zeros(X, model.ops, layers, width) if X else None


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Mix the layers of Docs: those of the present update, otherwise those stored on the Doc, otherwise layers that the
    component computes on demand (for `as_doc`, `rehearse`, a disabled component)."""
    state = state_of(model)
    docs = list(docs)
    if is_train:
        state.zeros = None  # still there if the component was disabled in `initialize`
    batch = state.batch or state.zeros
    if batch and state.docs_are_copies:
        docs = [batch.original(doc) for doc in docs]
    layers: list[Any] = [batch.layers_of(doc) if batch else None for doc in docs]
    in_batch = [array is not None for array in layers]
    if not all(in_batch):
        state.zeros = None
        _fill_from_docs(state, docs, layers, is_train)
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


def _fill_from_docs(
    state: ListenerState, docs: list[Doc], layers: list[Any], is_train: bool
) -> None:
    """Replace every None in `layers` by the layers stored on its Doc, or by computed ones."""
    upstream = state.upstream
    gaps = [place for place, array in enumerate(layers) if array is None]
    for place in gaps:
        layers[place] = upstream.stored_layers(docs[place], train=is_train)
    missing = [place for place in gaps if layers[place] is None]
    if is_train and len(missing) < len(gaps):
        upstream.mark_training([docs[place] for place in gaps if layers[place] is not None])
    if missing:
        computed = upstream.compute_missing(
            [docs[place] for place in missing], train=is_train, warn=not state.docs_are_copies
        )
        for place, array in zip(missing, computed, strict=True):
            layers[place] = array

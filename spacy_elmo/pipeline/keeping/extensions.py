"""`._.elmo` and `._.elmo_layers` of Doc, Span and Token, and where a Doc keeps its layers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc, Span, Token
from thinc.types import Floats1d, Floats2d, Floats3d
from thinc.util import is_xp_array

# As spaCy spells the values of extensions, so that `as_doc` and `from_docs` drop them as they do others. The name is
# that of none, because a user may have an `elmo_layers` of their own.
_KEY: Any = ("._.", "elmo_layers_by_component", None, None)
_USER = ""
"""Stands for the name of a component where a user has set the layers."""


def install_extensions() -> None:
    """Register the extensions, unless they are there. Again in every process, because a spawned one starts without.

    What somebody else has registered under one of these names stays theirs, with one warning.
    """
    _install(Doc, "elmo_layers", doc_layers, _set_doc_layers)
    _install(Span, "elmo_layers", _span_layers)
    _install(Token, "elmo_layers", _token_layers)
    _install(Doc, "elmo", _doc_vectors, _set_doc_vectors)
    _install(Span, "elmo", span_vector)
    _install(Token, "elmo", token_vector)


_warned: set[tuple[type, str]] = set()


def _install(cls: Any, name: str, getter: Callable, setter: Callable | None = None) -> None:
    if not cls.has_extension(name):
        cls.set_extension(name, getter=getter, setter=setter)
    elif cls.get_extension(name)[2] is not getter and (cls, name) not in _warned:
        _warned.add((cls, name))
        owner = cls.__name__.lower()
        warnings.warn(
            f"{owner}._.{name} is an extension of your own, or of another package, so it does not give the ELMo"
            f" vectors. To have them there, rename it, or call {cls.__name__}.remove_extension({name!r}) before"
            " the elmo component is made",
            UserWarning,
            stacklevel=3,
        )


def store_layers(doc: Doc, component: str, layers: Floats3d | Floats2d) -> None:
    """Keep the layers that a component has computed for a Doc, or their average, beside those of any other component.

    They are in `user_data` as plain arrays, so `to_bytes`, `DocBin` and `n_process` carry them.
    """
    stored = doc.user_data.setdefault(_KEY, {})
    stored.pop(component, None)  # so that the last to write stands last
    stored[component] = layers


def stored_layers(doc: Doc, component: str) -> Floats3d | None:
    """The layers that a component, or the user, has put on a Doc; None: none, or they do not match its tokens."""
    stored = doc.user_data.get(_KEY, {})
    layers = stored.get(component, stored.get(_USER))
    fit = layers is not None and layers.ndim == 3 and layers.shape[1] == len(doc)
    return layers if fit else None


def doc_layers(doc: Doc) -> Floats3d | None:
    """(layers, n_tokens, width), of the component that ran last, in its `dtype`. None: none did, or it keeps their
    average alone.

    Raises:
        ValueError: the Doc's tokens are no longer those that the component saw.
    """
    kept = _newest(doc)
    return kept if kept is not None and kept.ndim == 3 else None


def _newest(doc: Doc) -> Any:
    """What the component that ran last has written: layers, or (n_tokens, width), their average."""
    stored = doc.user_data.get(_KEY)
    if not stored:
        return None
    component, kept = list(stored.items())[-1]
    if kept.shape[-2] != len(doc):
        raise ValueError(
            f"The Doc has {len(doc)} tokens, but its ELMo layers were computed for {kept.shape[-2]}: it was"
            f" retokenized since. Run the component again: nlp.get_pipe({component or 'elmo'!r})(doc)"
        )
    return kept


def _summands(doc: Doc) -> Any:
    """(any, n_tokens, width), over the first axis of which to average, in float32 whatever they are kept in."""
    kept = _newest(doc)
    return kept[None] if kept is not None and kept.ndim == 2 else kept


def _set_doc_layers(doc: Doc, layers: Floats3d | None) -> None:
    """None drops what every component has written. A copy of an array takes its place, as float32.

    Raises:
        ValueError: no array of numpy or cupy, or one of another shape than (layers, n_tokens, width).
    """
    if layers is None:
        doc.user_data.pop(_KEY, None)
        return
    if not is_xp_array(layers):
        raise ValueError(
            f"doc._.elmo_layers must be an array of numpy or cupy, not a {type(layers).__name__}: convert it first"
        )
    if layers.ndim != 3 or layers.shape[1] != len(doc):
        raise ValueError(
            f"doc._.elmo_layers must be (layers, {len(doc)}, width) for this Doc, not {layers.shape}"
        )
    own: Any = layers.astype("float32")
    doc.user_data[_KEY] = {_USER: own}


def _set_doc_vectors(doc: Doc, value: None) -> None:
    """None drops the layers, as `doc_cleaner` does.

    Raises:
        ValueError: for anything else, because the vectors are the average of the layers.
    """
    if value is not None:
        raise ValueError("doc._.elmo is the average of doc._.elmo_layers: set these")
    _set_doc_layers(doc, None)


def _span_layers(span: Span) -> Floats3d | None:
    layers = doc_layers(span.doc)
    return None if layers is None else layers[:, span.start : span.end]


def _token_layers(token: Token) -> Floats2d | None:
    layers = doc_layers(token.doc)
    return None if layers is None else layers[:, token.i]


def _doc_vectors(doc: Doc) -> Floats2d | None:
    summands = _summands(doc)
    return None if summands is None else summands.mean(axis=0, dtype="float32")


def token_vector(token: Token) -> Floats1d | None:
    """The average of a token's layers, `token._.elmo`. None: there are none."""
    summands = _summands(token.doc)
    return None if summands is None else summands[:, token.i].mean(axis=0, dtype="float32")


def span_vector(span: Span) -> Floats1d | None:
    """The mean over tokens that are no whitespace, `span._.elmo`; zeros if there are none. None: no layers."""
    summands = _summands(span.doc)
    if summands is None:
        return None
    words = [token.i for token in span if not token.is_space]
    if not words:
        return summands[0, :0].sum(axis=0, dtype="float32")
    return summands[:, words].mean(axis=(0, 1), dtype="float32")

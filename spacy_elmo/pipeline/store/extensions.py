"""The extension attributes `_.elmo` and `_.elmo_layers`, and the storage of layers on a Doc."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc, Span, Token
from thinc.types import Floats1d, Floats2d, Floats3d
from thinc.util import is_xp_array

# The key has the form of spaCy's keys for extension values, so `as_doc` and `from_docs` drop it too. It is not called
# `elmo_layers`, because a user may have an extension of this name.
_KEY: Any = ("._.", "elmo_layers_by_component", None, None)
_USER = ""
"""Key in `StoredLayers` for layers that a user has set. All other keys are names of components."""


def install_extensions() -> None:
    """Register the extension attributes `_.elmo` and `_.elmo_layers` of Doc, Span and Token.

    Every new `elmo` component calls this function. Call it yourself in a process without an `elmo` component,
    for example to read a `DocBin` with vectors. If other code has already registered an extension with one of
    these names, that extension stays, and this function warns once.
    """
    _install(Doc, "elmo_layers", layers_of, _set_doc_layers)
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
            f"{owner}._.{name} is already an extension of your code or of another package, so it does not return the"
            f" ELMo vectors. To get them there, rename your extension, or call"
            f" {cls.__name__}.remove_extension({name!r}) before the elmo component is made",
            UserWarning,
            stacklevel=3,
        )


class StoredLayers(dict[str, Any]):
    """Dict from the names of components to the arrays that these components have stored on a Doc (layers, or
    the average of the layers), in the order in which the components ran.

    A saved Doc contains only a plain dict of the arrays, without `versions`, because a version has no meaning
    in another process.
    """

    def __init__(self, *arrays: Any) -> None:
        super().__init__(*arrays)
        self.versions: dict[str, str] = {}
        """For each array, the identifier of the weights that computed the array (`BiLMShim.version`). Copies
        of the Doc keep these identifiers."""


def store_layers(
    doc: Doc, component: str, layers: Floats3d | Floats2d, version: str | None = None
) -> None:
    """Store the layers from a component, or the average of these layers, on a Doc. Arrays from other
    components stay on the Doc.

    The arrays are in `doc.user_data`, so `to_bytes`, `DocBin` and `nlp.pipe(n_process=2)` keep the arrays.

    Args:
        component: name of the component.
        version: identifier of the weights (`BiLMShim.version`); None: the weights are unknown.
    """
    stored = doc.user_data.get(_KEY)
    if not isinstance(stored, StoredLayers):
        stored = doc.user_data[_KEY] = StoredLayers(stored or {})
    stored.pop(component, None)  # so that the component that ran last comes last
    stored[component] = layers
    stored.versions.pop(component, None)
    if version is not None:
        stored.versions[component] = version


def stored_layers(doc: Doc, component: str, version: str | None = None) -> Floats3d | None:
    """Return the layers that a component or the user has stored on a Doc.

    The result is None if there are no layers, if the Doc's number of tokens has changed, or if other weights
    than `version` have computed the layers.

    Args:
        doc: a Doc.
        component: name of the component.
        version: identifier of the required weights (`BiLMShim.version`); None: any weights. Layers that a
            user has set are returned for every version.
    """
    stored = doc.user_data.get(_KEY, {})
    layers = stored.get(component, stored.get(_USER))
    if layers is None or layers.ndim != 3 or layers.shape[1] != len(doc):
        return None
    if version is not None and component in stored:
        versions = getattr(stored, "versions", {})
        return layers if versions.get(component) == version else None
    return layers


def layers_of(doc: Doc, name: str | None = None) -> Floats3d | None:
    """Return the layers of a Doc, (layers, n_tokens, width). The data type is the option `dtype` of the
    component that has stored the layers.

    Args:
        doc: a Doc.
        name: name of the component; None: the component that ran last, as for `doc._.elmo_layers`.

    Returns:
        The layers; None if the component has stored no layers, or only their average.

    Raises:
        ValueError: the Doc was retokenized after the layers were computed.
    """
    stored = _stored(doc, name)
    return stored if stored is not None and stored.ndim == 3 else None


def _stored(doc: Doc, name: str | None = None) -> Any:
    """Return the array that a component has stored on a Doc: the layers, or, with the option
    `store = "average"`, their average.

    If `name` is None, return the array of the component that ran last.
    """
    stored = doc.user_data.get(_KEY)
    if not stored or name not in (None, *stored):
        return None
    component = next(reversed(stored)) if name is None else name
    array = stored[component]
    if array.shape[-2] != len(doc):
        raise ValueError(
            f"The Doc has {len(doc)} tokens, but its ELMo layers were computed for {array.shape[-2]} tokens, before it"
            f" was retokenized. Run the component again: nlp.get_pipe({component or 'elmo'!r})(doc)"
        )
    return array


def _layers_to_average(doc: Doc) -> Any:
    """Return the layers of a Doc, (layers, n_tokens, width), from the component that ran last. If only the
    average of the layers is stored, return the average as a single layer."""
    stored = _stored(doc)
    return stored[None] if stored is not None and stored.ndim == 2 else stored


def _set_doc_layers(doc: Doc, layers: Floats3d | None) -> None:
    """Remove the layers of all components from a Doc, and store a float32 copy of `layers`. If `layers` is
    None, store nothing.

    Raises:
        ValueError: `layers` is not an array of numpy or cupy, or the shape is not (layers, n_tokens, width).
    """
    if layers is None:
        doc.user_data.pop(_KEY, None)
        return
    if not is_xp_array(layers):
        raise ValueError(
            f"doc._.elmo_layers must be an array of numpy or cupy, not a {type(layers).__name__}: convert it to one"
        )
    if layers.ndim != 3 or layers.shape[1] != len(doc):
        raise ValueError(
            f"doc._.elmo_layers must have the shape (layers, {len(doc)}, width) for this Doc, not {layers.shape}"
        )
    copied: Any = layers.astype("float32")
    doc.user_data[_KEY] = {_USER: copied}


def _set_doc_vectors(doc: Doc, value: None) -> None:
    """Remove the layers of a Doc, if the value is None. spaCy's `doc_cleaner` sets attributes to None.

    Raises:
        ValueError: the value is not None. Vectors cannot be set, because they are the average of the layers.
    """
    if value is not None:
        raise ValueError(
            "doc._.elmo cannot be set, because it is the average of the layers: set doc._.elmo_layers"
        )
    _set_doc_layers(doc, None)


def _span_layers(span: Span) -> Floats3d | None:
    layers = layers_of(span.doc)
    return None if layers is None else layers[:, span.start : span.end]


def _token_layers(token: Token) -> Floats2d | None:
    layers = layers_of(token.doc)
    return None if layers is None else layers[:, token.i]


def _doc_vectors(doc: Doc) -> Floats2d | None:
    layers = _layers_to_average(doc)
    return None if layers is None else layers.mean(axis=0, dtype="float32")


def token_vector(token: Token) -> Floats1d | None:
    """Return the average of a token's layers (`token._.elmo`); None if there are no layers."""
    layers = _layers_to_average(token.doc)
    return None if layers is None else layers[:, token.i].mean(axis=0, dtype="float32")


def span_vector(span: Span) -> Floats1d | None:
    """Return the mean of the vectors of a span's tokens (`span._.elmo`); None if there are no layers.

    Whitespace tokens are left out. If the span has only whitespace tokens, the result is zeros.
    """
    layers = _layers_to_average(span.doc)
    if layers is None:
        return None
    words = [token.i for token in span if not token.is_space]
    if not words:
        return layers[0, :0].sum(axis=0, dtype="float32")
    return layers[:, words].mean(axis=(0, 1), dtype="float32")

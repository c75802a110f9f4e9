"""The extension attributes `_.elmo` and `_.elmo_layers`, and the storage of layers on a Doc."""

from __future__ import annotations

from typing import Any

import numpy as np
from spacy.attrs import IDX
from spacy.tokens import Doc, Span, Token
from thinc.types import Floats1d, Floats2d, Floats3d

# The key has the form of spaCy's keys for extension values, so `as_doc` and `from_docs` drop it too. `from_docs` warns
# with this name (W101). It contains a space, so it is not the name of a user's extension.
_KEY: Any = ("._.", "ELMo layers", None, None)
_USER = ""
"""Key in `StoredLayers` for layers that a user has set. All other keys are names of components."""
USER_ONLY = "user only"
"""Argument `version` of `stored_layers` that no weights have, so it excludes all layers but those of a user."""


def install_extensions() -> None:
    """Register the extension attributes `_.elmo` and `_.elmo_layers` of Doc, Span and Token.

    Every new `elmo` component calls this function. Call it yourself in a process without an `elmo` component,
    for example to read a `DocBin` with vectors.
    """
    attributes: tuple[tuple[Any, str, Any, Any], ...] = (
        (Doc, "elmo_layers", layers_of, _set_doc_layers),
        (Span, "elmo_layers", _span_layers, _refuse),
        (Token, "elmo_layers", _token_layers, _refuse),
        (Doc, "elmo", _doc_vectors, _set_doc_vectors),
        (Span, "elmo", span_vector, _refuse),
        (Token, "elmo", token_vector, _refuse),
    )
    for cls, name, getter, setter in attributes:
        known = cls.get_extension(name)[2] if cls.has_extension(name) else None
        if known is not getter:
            # The same, if this module was loaded again. spaCy raises an error if another extension has this name.
            new, old = (
                [getattr(f, part, None) for part in ("__module__", "__name__")]
                for f in (getter, known)
            )
            cls.set_extension(name, getter=getter, setter=setter, force=new == old)


class StoredLayers(dict[str, dict[str, Any]]):
    """What the components of a pipeline have stored on a Doc, in the order in which they ran: a dict from the
    name of a component to a dict with the array `layers` (the layers, or their average), and the array
    `starts`, (n_tokens,), with the character offset of each token for which the layers were computed.

    The attributes have no meaning in another process, so only copies of the Doc keep them.
    """

    def __init__(self, *stored: Any) -> None:
        super().__init__(*stored)
        self.versions: dict[str, str] = {}
        """For each component, the identifier of the weights that computed the layers (`BiLMShim.version`)."""
        self.numbers: dict[int, int] = {}
        """The ids of the `LayerSource` objects that have stored layers or train on this Doc, each with the
        number of the Doc in the training batch of the source; 0: in no batch."""


def stored_on(doc: Doc) -> StoredLayers:
    """Return the `StoredLayers` of a Doc, which are added to the Doc if it has none."""
    stored = doc.user_data.get(_KEY)
    if not isinstance(stored, StoredLayers):
        stored = doc.user_data[_KEY] = StoredLayers(stored or {})
    return stored


def numbers_of(doc: Doc) -> dict[int, int]:
    """Return the attribute `numbers` of a Doc's `StoredLayers`; an empty dict if there are none."""
    return getattr(doc.user_data.get(_KEY), "numbers", {})


def starts_of(doc: Doc) -> np.ndarray:
    """Return the character offset of each token, (n_tokens,). The text of a Doc never changes, so the Doc was
    retokenized if these numbers have changed."""
    return doc.to_array(IDX).astype("int32")


def store_layers(
    doc: Doc, component: str, layers: Floats3d | Floats2d, version: str | None = None
) -> None:
    """Store the layers from a component, or the average of these layers, on a Doc. `version` identifies the weights
    (`BiLMShim.version`), if they are known. Arrays from other components stay on the Doc.

    The arrays are in `doc.user_data`, so `to_bytes`, `DocBin` and `nlp.pipe(n_process=2)` keep the arrays.
    """
    stored = stored_on(doc)
    stored.pop(component, None)  # so that the component that ran last comes last
    stored[component] = {"layers": layers, "starts": starts_of(doc)}
    stored.versions.pop(component, None)
    if version is not None:
        stored.versions[component] = version


def stored_layers(doc: Doc, component: str, version: str | None = None) -> Floats3d | None:
    """Return the layers that a component or the user has stored on a Doc; None if there are none, or if the Doc
    was retokenized.

    Args:
        component: name of the component.
        version: identifier of the weights that must have computed the layers of the component
            (`BiLMShim.version`), or `USER_ONLY`; None: any weights. Layers that a user has set fit every version.
    """
    stored = doc.user_data.get(_KEY, {})
    entry = stored.get(component, stored.get(_USER))
    if entry is None or entry["layers"].ndim != 3 or not _is_current(doc, entry["starts"]):
        return None
    is_other = version is not None and component in stored
    if is_other and getattr(stored, "versions", {}).get(component) != version:
        return None
    return entry["layers"]


def layers_of(doc: Doc, name: str | None = None) -> Floats3d | None:
    """Return the layers of a Doc, (layers, n_tokens, width). The data type is the option `dtype` of the
    component that has stored the layers.

    Args:
        doc: a Doc. After it was retokenized, the component must run again.
        name: name of the component; None: the component that ran last, as for `doc._.elmo_layers`.

    Returns:
        The layers; None if the component has stored no layers, or only their average.
    """
    array = _array_of(doc, 0, len(doc), name)
    return array if array is not None and array.ndim == 3 else None


def _is_current(doc: Doc, starts: np.ndarray, start: int = 0, end: int | None = None) -> bool:
    """Return True if the tokens `doc[start:end]` begin and end where they did when layers were computed."""
    if len(starts) != len(doc):
        return False
    if end is None or end - start > 100:  # `to_array` reads all tokens, but faster
        return bool((starts == starts_of(doc)).all())
    return [token.idx for token in doc[start : end + 1]] == starts[start : end + 1].tolist()


def _array_of(doc: Doc, start: int, end: int, name: str | None = None) -> Any:
    """Check that the tokens `doc[start:end]` are those for which layers were computed, and return the array that
    a component has stored on the Doc: the layers, or their average. None: the component that ran last."""
    stored = doc.user_data.get(_KEY)
    if not stored or name not in (None, *stored):
        return None
    component = next(reversed(stored)) if name is None else name
    array, starts = stored[component]["layers"], stored[component]["starts"]
    if not _is_current(doc, starts, start, end):
        raise ValueError(
            f"The Doc with {len(doc)} tokens was retokenized after its ELMo layers were computed, for {len(starts)}"
            f" tokens. Run the component again: nlp.get_pipe({component or 'elmo'!r})(doc)"
        )
    return array


def _layers_of(doc: Doc, start: int, end: int, *, or_average: bool = False) -> Any:
    """Return the layers of the tokens `doc[start:end]`, (layers, n_tokens, width), from the component that ran
    last. If only the average of the layers is stored, return None, or the average as a single layer."""
    array = _array_of(doc, start, end)
    if array is not None and array.ndim == 2:
        array = array[None] if or_average else None
    return None if array is None else array[:, start:end]


def _set_doc_layers(doc: Doc, layers: Floats3d | None) -> None:
    """Remove the layers of all components from a Doc, and store a float32 copy of `layers`. If `layers` is
    None, store nothing."""
    if layers is None:
        doc.user_data.pop(_KEY, None)
        return
    if layers.ndim != 3 or layers.shape[1] != len(doc):
        raise ValueError(
            f"doc._.elmo_layers must have the shape (layers, {len(doc)}, width) for this Doc, not {layers.shape}"
        )
    copied: Any = layers.astype("float32")
    doc.user_data.pop(_KEY, None)
    store_layers(doc, _USER, copied)


def _set_doc_vectors(doc: Doc, average: Floats2d | None) -> None:
    """Store a float32 copy of the average of the layers on a Doc without layers, to which a program copies all
    attributes of another Doc. If `average` is None, remove the layers. spaCy's `doc_cleaner` sets attributes to None.
    """
    if average is None:
        _set_doc_layers(doc, None)
        return
    if doc.user_data.get(_KEY):
        raise ValueError(
            "doc._.elmo cannot be set, because it is the average of the layers: set doc._.elmo_layers"
        )
    if average.ndim != 2 or len(average) != len(doc):
        raise ValueError(
            f"doc._.elmo must have the shape ({len(doc)}, width) for this Doc, not {average.shape}"
        )
    copied: Any = average.astype("float32")
    store_layers(doc, _USER, copied)


def _refuse(thing: Span | Token, value: Any) -> None:
    raise ValueError(
        f"The ELMo vectors of a {type(thing).__name__} cannot be set, because they are part of the Doc's layers: set"
        " doc._.elmo_layers"
    )


def _span_layers(span: Span) -> Floats3d | None:
    return _layers_of(span.doc, span.start, span.end)


def _token_layers(token: Token) -> Floats2d | None:
    layers = _layers_of(token.doc, token.i, token.i + 1)
    return None if layers is None else layers[:, 0]


def _doc_vectors(doc: Doc) -> Floats2d | None:
    layers = _layers_of(doc, 0, len(doc), or_average=True)
    return None if layers is None else layers.mean(axis=0, dtype="float32")


def token_vector(token: Token) -> Floats1d | None:
    """Return the average of a token's layers (`token._.elmo`); None if there are no layers."""
    layers = _layers_of(token.doc, token.i, token.i + 1, or_average=True)
    return None if layers is None else layers[:, 0].mean(axis=0, dtype="float32")


def span_vector(span: Span) -> Floats1d | None:
    """Return the mean of the vectors of a span's tokens (`span._.elmo`); None if there are no layers.

    Whitespace tokens are left out. If the span has only whitespace tokens, the result is zeros.
    """
    layers = _layers_of(span.doc, span.start, span.end, or_average=True)
    if layers is None:
        return None
    words = [place for place, token in enumerate(span) if not token.is_space]
    if not words:
        return layers[0, :0].sum(axis=0, dtype="float32")
    return layers[:, words].mean(axis=(0, 1), dtype="float32")

"""Entries in a pipeline's meta with the source and licence of the biLM's weights. `spacy package` shows these
entries."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spacy.language import Language

from ..bilm.weights import Weights
from ..weight_names import find_weights, ways_to_weights

_FIELDS = {"author": "author", "license": "licence", "url": "url", "description": "corpus"}
"""Mapping from the names of fields in spaCy's meta (in the list `sources`) to the names of the same fields in
the card of a weights file."""


def credit_and_check_language(nlp: Language, weights: str) -> None:
    """Name the weights of an `elmo` component in the pipeline's meta, and check the language of the weights.

    The weights and the training text of the biLM are added to the list `sources` of the meta. If the meta has
    no licence, the licence of the weights is added too. If the weights and the pipeline have different
    languages, a warning says so. If `sources` already contains the weights, or if the weights cannot be read,
    this function does nothing.

    Args:
        weights: the option `weights` of the component, a name or a path.
    """
    try:
        card = Weights.load_card(find_weights(weights))
    except (OSError, ValueError):
        return  # Loading the weights raises this error, if they are ever needed.
    meta = nlp.meta
    sources = list(meta.get("sources") or [])
    name = _text(f"biLM {card.get('name') or Path(weights).stem}")
    if any(isinstance(source, Mapping) and source.get("name") == name for source in sources):
        return
    fields = {field: _text(card[entry]) for field, entry in _FIELDS.items() if card.get(entry)}
    meta["sources"] = [*sources, {"name": name, **fields}, *corpus_sources(card.get("sources"))]
    meta["license"] = meta.get("license") or fields.get("license", "")
    language = card.get("language")
    if language and nlp.lang and "xx" not in (language, nlp.lang) and language != nlp.lang:
        # The callers are functions of spaCy, so a higher stack level would show a line of spaCy.
        warnings.warn(
            f"The biLM of weights={weights!r} was trained on language {language!r}, but the pipeline's language is"
            f" {nlp.lang!r}. {ways_to_weights(nlp.lang)}",
            stacklevel=1,
        )


def corpus_sources(sources: Any) -> list[dict[str, str]]:
    """Convert `sources`, the sources of the training text in a biLM's card, to the format of spaCy's meta: a
    list with one dict of strings for each source."""
    listed = sources if isinstance(sources, list) else [sources] if sources else []
    return [
        {_text(key): _text(value) for key, value in source.items()}
        if isinstance(source, Mapping)
        else {"name": _text(source)}
        for source in listed
    ]


def _text(value: Any) -> str:
    """Convert a value to text that spaCy can write. Unpaired Unicode surrogates, which a model card can contain,
    become question marks."""
    return str(value).encode("utf8", "replace").decode("utf8")

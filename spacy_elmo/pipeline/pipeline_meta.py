"""The origin of an elmo's weights in the meta of its pipeline, which `spacy package` shows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spacy.language import Language

from ..bilm.weights import Weights
from ..catalogue.weight_names import find_weights, ways_to_weights

_FIELDS = {"author": "author", "license": "licence", "url": "url", "description": "corpus"}
"""A field of spaCy's sources -> the field of the weights' card."""


def credit_and_check_language(nlp: Language, weights: str) -> None:
    """Add the weights of an elmo to the sources of its pipeline, and their licence if the pipeline has none; warn if
    they are of another language. A saved pipeline names the weights already, and stays as it is.

    Args:
        weights: the option of the component, a name or a path.
    """
    try:
        card = Weights.load_card(find_weights(weights))
    except (OSError, ValueError):
        return  # The error belongs to the loading of the weights, which may never be needed.
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
        # Without a stack level, so that the line shown is this one and not one of spaCy's.
        warnings.warn(
            f"The biLM of weights={weights!r} was trained on language {language!r}, and this pipeline's language is"
            f" {nlp.lang!r}. {ways_to_weights(nlp.lang)}",
            stacklevel=1,
        )


def corpus_sources(sources: Any) -> list[dict[str, str]]:
    """Return the sources of the biLM's corpus, as its card names them, in the form of spaCy's sources."""
    listed = sources if isinstance(sources, list) else [sources] if sources else []
    return [
        {_text(key): _text(value) for key, value in source.items()}
        if isinstance(source, Mapping)
        else {"name": _text(source)}
        for source in listed
    ]


def _text(value: Any) -> str:
    """Return a value as text that spaCy can write; a card may also contain half of a surrogate pair."""
    return str(value).encode("utf8", "replace").decode("utf8")

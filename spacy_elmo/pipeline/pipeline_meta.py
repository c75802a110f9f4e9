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


def credit_weights(nlp: Language, weights: str) -> None:
    """Add the weights of an `elmo` component and the texts of their training to the list `sources` of the pipeline's
    meta, and their licence if the meta has none. The first time, warn if the weights are of another language.

    Args:
        weights: the option `weights` of the component, a name or a path.
    """
    try:
        card = Weights.load_card(find_weights(weights))
    except (OSError, ValueError):
        return  # Loading the weights raises this error, if they are ever needed.
    meta = nlp.meta
    sources = list(meta.get("sources") or [])
    name = f"biLM {card.get('name') or Path(weights).stem}"
    if any(isinstance(source, Mapping) and source.get("name") == name for source in sources):
        return
    fields = {field: str(card[entry]) for field, entry in _FIELDS.items() if card.get(entry)}
    meta["sources"] = [*sources, {"name": name, **fields}, *corpus_sources(card.get("sources"))]
    meta["license"] = meta.get("license") or fields.get("license", "")
    _warn_of_another_language(nlp, weights, card.get("language"))


def _warn_of_another_language(nlp: Language, weights: str, language: str | None) -> None:
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
        {str(key): str(value) for key, value in source.items()}
        if isinstance(source, Mapping)
        else {"name": str(source)}
        for source in listed
    ]

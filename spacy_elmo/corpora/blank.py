"""A blank pipeline around a weights file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import spacy
from spacy.language import Language

from ..bilm.weights import Weights
from ..pipeline.bundled import bundled_names, find_weights

ANY_LANGUAGE = "xx"


def blank_pipeline(
    source: str, lang: str | None = None, *, fallback: str | None = None
) -> tuple[Language, list[str]]:
    """A pipeline whose only component is an elmo with these weights; the component reads them when it is first used.

    Args:
        source: a weights file, or the name of a bundled biLM.
        lang: the language; by default that of the weights' card.
        fallback: the language if the card knows none.

    Returns:
        The pipeline, with the absolute path of the file in its config, and remarks for the user.

    Raises:
        OSError: there is no such file.
        ValueError: it is no weights file, no language is known, or spaCy does not have it.
    """
    path = find_weights(source)
    card = Weights.load(path).card
    lang = lang or card.get("language") or fallback
    if lang is None:
        raise ValueError(
            f"{path}: its card does not say of which language it is. Give it, such as --lang en; --lang {ANY_LANGUAGE}"
            " is spaCy's multi-language tokenizer"
        )
    try:
        nlp = spacy.blank(lang)
    except (ImportError, ValueError) as error:  # an ImportError also for an unknown language
        raise ValueError(
            f"spaCy makes no pipeline of the language {lang!r}: {str(error).strip()}"
        ) from error
    weights = source if source in bundled_names() else str(path.absolute())
    nlp.add_pipe("elmo", config={"weights": weights})
    return nlp, _remarks(card, lang)


def _remarks(card: Mapping[str, Any], lang: str) -> list[str]:
    made_by = card.get("tokenizer")
    own = f"spacy.blank({lang!r})"
    if made_by in (None, own):
        return []
    return [
        f"The words on which the weights were trained are by another tokenizer ({made_by}) than that of this pipeline"
        f" ({own}). Vectors are best where words are cut as in training: [nlp.tokenizer] of a config sets another"
    ]

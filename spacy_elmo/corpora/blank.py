"""Blank pipelines that consist of an elmo with given weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import spacy
from spacy.language import Language

from ..bilm.weights import Weights
from ..catalogue.weight_names import find_weights, known_names

ANY_LANGUAGE = "xx"


def blank_pipeline(
    source: str, lang: str | None = None, *, fallback: str | None = None
) -> tuple[Language, list[str]]:
    """Return a pipeline whose only component is an elmo with these weights; it reads them when it is first used.

    Args:
        source: path of a weights file, or name of a bundled biLM.
        lang: the language; by default the one in the weights' card.
        fallback: the language if the card names none.

    Returns:
        The pipeline, with the absolute path of the file in its config, and warnings for the user.

    Raises:
        OSError: the file does not exist.
        ValueError: it is not a weights file, the language is not known, or spaCy does not support it.
    """
    path = find_weights(source)
    card = Weights.load(path).card
    lang = lang or card.get("language") or fallback
    if lang is None:
        raise ValueError(
            f"{path}: the card does not name the language of the weights. Set lang (`--lang`), for example to en;"
            f" {ANY_LANGUAGE} is spaCy's multi-language tokenizer"
        )
    try:
        nlp = spacy.blank(lang)
    except (ImportError, ValueError) as error:  # an ImportError also for an unknown language
        raise ValueError(
            f"spaCy cannot create a pipeline for the language {lang!r}: {str(error).strip()}"
        ) from error
    weights = source if source in known_names() else str(path.absolute())
    nlp.add_pipe("elmo", config={"weights": weights})
    return nlp, _tokenizer_warnings(card, lang)


def _tokenizer_warnings(card: Mapping[str, Any], lang: str) -> list[str]:
    training_tokenizer = card.get("tokenizer")
    tokenizer = f"spacy.blank({lang!r})"
    if training_tokenizer in (None, tokenizer):
        return []
    return [
        f"The weights were trained on words from another tokenizer ({training_tokenizer}) than this pipeline's"
        f" ({tokenizer}). Vectors are best if text is tokenized as in training; [nlp.tokenizer] of a config sets the"
        " tokenizer"
    ]
